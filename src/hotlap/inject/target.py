"""What a lever may touch, as it is in a live process: every change counted, guarded and undoable."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotlap.inject.guard import Guard
from hotlap.inject.identities import Identities
from hotlap.inject.met_inside import LOOKS, frozen_inside
from hotlap.inject.on_import import on_import
from hotlap.inject.wrapped_steps import wrap_steps
from hotlap.lever.knob import Knob
from hotlap.lever.script_errors import is_the_scripts
from hotlap.probe.c_functions import as_unbound
from hotlap.probe.hook_points import HookPoints
from hotlap.probe.module_walk import parameters_of
from hotlap.probe.undo import Undo
from hotlap.probe.watch import Watch
from hotlap.records.call import Call

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer
    from torch.utils.data import DataLoader

__all__ = ["GuestTarget"]


class GuestTarget:
    """One lever's hold on the process (the ``Target`` of the lever contract)."""

    def __init__(self, lever: str, call: Call, points: HookPoints, watch: Watch) -> None:
        self.lever = lever
        self.cores = call.cores or 1
        self.scratch, self.scratches = call.scratch or call.timeline_dir, call.scratches
        self.undo = Undo()
        self.changes = 0
        self.last_errors: list[BaseException] = []
        """The script's own, of work that was done when it had ended."""
        self._points = points
        self._watch = watch
        self._guard = Guard(self.fail)
        self._exits: list[Callable[[], None]] = []
        self._trained = Identities()
        self._reported: tuple[str, str] | None = None
        self._why = ""

    # --- the contract ---
    def changed(self, count: int = 1) -> None:
        """Count changes that did not go through :meth:`replace`."""
        self.changes += count
        self.report()

    def unfit(self, why: str) -> None:
        """Say why there was nothing to change; the last reason is the one that is shown."""
        self._why = why

    def replace(self, owner: object, name: str, new: object) -> None:
        """Set an attribute, also one that its class guards (``DataLoader.persistent_workers``)."""
        if hasattr(owner, "__dict__") and not isinstance(owner, type | ModuleType | Knob):
            self.undo.replace_in(owner, name, new)
        else:
            self.undo.replace(owner, name, as_unbound(getattr(owner, name, None), new))
        self.changed()

    def on_import(self, module: str, callback: Callable[[ModuleType], None]) -> None:
        """Call back when ``module`` has been imported."""
        on_import(module, self._guard.callback(callback))

    def on_loader(self, callback: Callable[[DataLoader[Any]], None]) -> None:
        """Call back once for each training loader, before its first iteration."""
        seen = Identities()
        guarded = self._guard.callback(callback)

        def hook(loader: Any, validating: bool) -> None:
            if not validating and seen.is_new(loader):
                guarded(loader)

        self._hang(self._points.on_loader, hook)

    def wrap_iterator(self, wrapper: Callable[[DataLoader[Any], Any], Any]) -> None:
        """Let ``wrapper`` return the iterator of each epoch of a training loader."""

        def hook(loader: Any, iterator: Any, validating: bool) -> Any:
            if not validating and self._guard.active:
                try:
                    return wrapper(loader, iterator)
                except Exception as err:
                    self.fail(err)
            return iterator

        self._hang(self._points.wrap_iterator, hook)

    def on_model(self, callback: Callable[[nn.Module], None]) -> None:
        """Call back once for each root module being trained, before its first training forward."""
        seen = Identities()
        guarded = self._guard.callback(callback)

        def hook(module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if module.training and self._is_trained(module) and seen.is_new(module):
                guarded(module)
            return call(*args, **kwargs)

        self._hang(self._points.around_forward, hook)

    def on_frozen(self, callback: Callable[[nn.Module], None]) -> None:
        """Call back once for each outermost module whose parameters are all frozen, before a call in training; for one
        that a trained root calls without having it as a part, after its first call."""
        seen, looked = Identities(), Identities()
        guarded = self._guard.callback(callback)

        def hook(module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self._points.validating:
                return call(*args, **kwargs)
            if not self._is_trained(module):
                own = [p.requires_grad for p in parameters_of(module)] if seen.get(module) is None else []
                if own and not any(own):
                    seen.put(module, True)
                    guarded(module)
                return call(*args, **kwargs)
            if (times := looked.get(module) or 0) >= LOOKS:
                return call(*args, **kwargs)
            looked.put(module, times + 1)
            said, met = frozen_inside(module, lambda: call(*args, **kwargs))
            for network in filter(seen.is_new, met):
                guarded(network)
            return said

        self._hang(self._points.around_forward, hook)

    def around_forward(
        self, wrapper: Callable[[nn.Module, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    ) -> None:
        """Wrap each outermost forward of a trained root."""
        guarded = self._guard.around(wrapper)

        def hook(module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self._is_trained(module):
                return guarded(module, call, args, kwargs)
            return call(*args, **kwargs)

        self._hang(self._points.around_forward, hook)

    def on_optimizer(self, callback: Callable[[Optimizer], None]) -> None:
        """Call back once for each optimizer, before its first step."""
        seen = Identities()
        guarded = self._guard.callback(callback)

        def hook(optimizer: Any) -> None:
            if seen.is_new(optimizer):
                guarded(optimizer)

        self._hang(self._points.before_step, hook)

    def around_backward(self, wrapper: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]) -> None:
        """Wrap each ``torch.autograd.backward``."""
        guarded = self._guard.around(lambda _owner, call, args, kwargs: wrapper(call, args, kwargs))
        self._hang(self._points.around_backward, lambda call, args, kwargs: guarded(None, call, args, kwargs))

    def around_step(
        self, wrapper: Callable[[Optimizer, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    ) -> None:
        """Wrap the ``step`` of each optimizer made, copied or unpickled from now on."""
        wrap_steps(self.undo, self._guard.around(wrapper))

    def around_save(self, wrapper: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]) -> None:
        """Wrap each ``torch.save``."""
        guarded = self._guard.around(lambda _owner, call, args, kwargs: wrapper(call, args, kwargs))
        self._hang(self._points.around_save, lambda call, args, kwargs: guarded(None, call, args, kwargs))

    def on_validation(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Call back when a validation begins and when it has ended."""
        guarded = self._guard.callback(lambda _frame: begin())
        self._hang(self._points.on_validation_begin, guarded)
        self._hang(self._points.on_validation_end, self._guard.callback(end))

    def at_exit(self, callback: Callable[[], None]) -> None:
        """Call back when the script has ended, also where the lever was undone before: it may still owe something."""
        self._exits.append(callback)

    # --- the guest's side ---

    def fail(self, error: BaseException) -> None:
        """Undo this lever; the script goes on without it."""
        self._guard.active = False
        self.undo.undo_all()
        self._mark("failed", f"{type(error).__name__}: {error}")

    def report(self) -> None:
        """Write what the lever has changed so far."""
        state = "applied" if self.changes > 0 else "no-effect"
        why = self._why if state == "no-effect" else ""
        if self._guard.active and (state, why) != self._reported:
            self._mark(state, why)

    def finish(self) -> None:
        """At the end of the process: do what is owed, tell the final count, leave what comes later to the script."""
        exits, self._exits = self._exits, []
        for callback in exits:
            try:
                callback()
            except Exception as err:
                if is_the_scripts(err):
                    self.last_errors.append(err)
                elif self._guard.active:
                    self.fail(err)
        self._reported = None
        self.report()
        self._guard.active = False  # functions that the script gave to atexit earlier run later

    def _mark(self, state: str, why: str) -> None:
        self._reported = (state, why)
        self._watch.set_mark("lever", self.lever, state, self.changes, why)

    def _hang(self, hooks: list[Any], hook: Any) -> None:
        hooks.append(hook)
        self.undo.add(lambda: hooks.remove(hook))

    def _is_trained(self, module: Any) -> bool:
        """Whether the module has parameters of its own that are being trained (a loss or a frozen teacher has none)."""
        known = self._trained.get(module)
        if known is None:
            import torch

            met = self._points.roots.get(id(module))
            root = met is not None and met() is module  # not one that lay there before
            if not root and not torch.is_grad_enabled():
                return False
            known = root or any(p.requires_grad for p in parameters_of(module))
            self._trained.put(module, known)
        return bool(known)
