"""A target in this process: what a lever may touch, over plain replacements of torch's own functions.

It knows nothing of the probes, so that a lever author can test a lever with torch and this alone.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["LocalTarget"]

_ABSENT: Any = object()


class LocalTarget:
    """Use as a context: ``with LocalTarget(scratch) as target: lever.apply(target, setting); train()``.

    Leaving it runs the exit callbacks and takes everything back. Exceptions of a lever's callbacks are not caught.
    """

    def __init__(self, scratch: str, cores: int = 2) -> None:
        self.cores = cores
        self.scratch = scratch
        self.scratches = 1
        self.changes = 0
        self.problems: list[str] = []
        """What could not be restored."""
        self.reasons: list[str] = []
        """Why the lever found nothing to change."""
        self._undo: list[Callable[[], None]] = []
        self._on_loader: list[Any] = []
        self._wrap_iterator: list[Any] = []
        self._on_model: list[Any] = []
        self._on_frozen: list[Any] = []
        self._forward: list[Any] = []
        self._on_optimizer: list[Any] = []
        self._backward: list[Any] = []
        self._step: list[Any] = []
        self._save: list[Any] = []
        self._validation: list[tuple[Any, Any]] = []
        self._exits: list[Any] = []
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._roots: weakref.WeakSet[Any] = weakref.WeakSet()
        self._validating = False
        self._depth = 0

    # --- the contract ---

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Set an attribute, also one that its class guards."""
        self.changes += 1
        self._swap(owner, name, new)

    def fail(self, error: BaseException) -> None:
        """A lever of a test has to work."""
        self.problems.append(f"failed: {type(error).__name__}: {error}")

    def on_import(self, module: str, callback: Callable[[ModuleType], None]) -> None:
        """Call back now if the module is there; modules imported later are not watched here."""
        if module in sys.modules:
            callback(sys.modules[module])

    def on_loader(self, callback: Any) -> None:
        """See the contract; so for the methods below."""
        self._on_loader.append(callback)

    def wrap_iterator(self, wrapper: Any) -> None:
        self._wrap_iterator.append(wrapper)

    def on_model(self, callback: Any) -> None:
        self._on_model.append(callback)

    def on_frozen(self, callback: Any) -> None:
        self._on_frozen.append(callback)

    def around_forward(self, wrapper: Any) -> None:
        self._forward.append(wrapper)

    def on_optimizer(self, callback: Any) -> None:
        self._on_optimizer.append(callback)

    def around_backward(self, wrapper: Any) -> None:
        self._backward.append(wrapper)

    def around_step(self, wrapper: Any) -> None:
        self._step.append(wrapper)

    def around_save(self, wrapper: Any) -> None:
        self._save.append(wrapper)

    def on_validation(self, begin: Any, end: Any) -> None:
        self._validation.append((begin, end))

    def at_exit(self, callback: Any) -> None:
        self._exits.append(callback)

    def changed(self, count: int = 1) -> None:
        self.changes += count

    def unfit(self, why: str) -> None:
        self.reasons.append(why)

    # --- the process ---

    def __enter__(self) -> LocalTarget:
        import torch
        from torch.optim import Optimizer
        from torch.utils.data import DataLoader

        real_iter, real_call, real_train = DataLoader.__iter__, torch.nn.Module.__call__, torch.nn.Module.train
        real_backward, real_save, real_init = torch.autograd.backward, torch.save, Optimizer.__init__

        def train(module: Any, mode: bool = True) -> Any:
            if self._depth == 0 and mode == self._validating and any(p.requires_grad for p in module.parameters()):
                self._validating = not mode
                for begin, end in self._validation:
                    (end if mode else begin)()
            self._depth += 1
            try:
                return real_train(module, mode)
            finally:
                self._depth -= 1

        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            real_init(optimizer, *args, **kwargs)
            if self._step or self._on_optimizer:
                optimizer.step = lambda *a, **k: self._run_step(optimizer, a, k)

        self._swap(torch.nn.Module, "__call__", lambda module, *a, **k: self._run_forward(real_call, module, a, k))
        self._swap(torch.nn.Module, "train", train)
        self._swap(DataLoader, "__iter__", lambda loader: self._run_iter(real_iter, loader))
        self._swap(torch.autograd, "backward", lambda *a, **k: _nest(self._backward, real_backward, a, k))
        self._swap(torch, "save", lambda *a, **k: _nest(self._save, real_save, a, k))
        self._swap(Optimizer, "__init__", init)
        return self

    def __exit__(self, *error: Any) -> None:
        for callback in self._exits:
            callback()
        while self._undo:
            self._undo.pop()()

    def _swap(self, owner: Any, name: str, new: Any) -> None:
        own = vars(owner).get(name, _ABSENT)
        guarded = own is not _ABSENT and not isinstance(owner, type | ModuleType)
        if guarded:
            vars(owner)[name] = new
        else:
            setattr(owner, name, new)

        def restore() -> None:
            if vars(owner).get(name, _ABSENT) is not new:
                self.problems.append(f"{owner!r:.60}.{name} was replaced by somebody else")
            elif own is _ABSENT:
                delattr(owner, name)
            elif guarded:
                vars(owner)[name] = own
            else:
                setattr(owner, name, own)

        self._undo.append(restore)

    def _run_iter(self, real: Any, loader: Any) -> Any:
        if self._validating:
            return real(loader)
        if loader not in self._seen:
            self._seen.add(loader)
            for callback in self._on_loader:
                callback(loader)
        iterator = real(loader)
        for wrapper in self._wrap_iterator:
            iterator = wrapper(loader, iterator)
        return iterator

    def _run_forward(self, real: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._depth > 0:
            return real(module, *args, **kwargs)
        self._depth += 1
        try:
            if module.training and module not in self._roots and any(p.requires_grad for p in module.parameters()):
                self._roots.add(module)
                for callback in self._on_model:
                    callback(module)

            own = [] if self._validating or module in self._seen else [p.requires_grad for p in module.parameters()]
            if own and not any(own):
                self._seen.add(module)
                for callback in self._on_frozen:
                    callback(module)

            def call(*a: Any, **k: Any) -> Any:
                return real(module, *a, **k)

            wrappers = [lambda c, a, k, w=w: w(module, c, a, k) for w in self._forward] if module in self._roots else []
            return _nest(wrappers, call, args, kwargs)
        finally:
            self._depth -= 1

    def _run_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if optimizer not in self._seen:
            self._seen.add(optimizer)
            for callback in self._on_optimizer:
                callback(optimizer)
        step = type(optimizer).step.__get__(optimizer)
        wrappers = [lambda c, a, k, w=w: w(optimizer, c, a, k) for w in self._step]
        return _nest(wrappers, step, args, kwargs)


def _nest(wrappers: list[Any], call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``call`` inside the wrappers ``(call, args, kwargs)``, the last one outermost."""
    for wrapper in wrappers:
        call = (lambda w, inner: lambda *a, **k: w(inner, a, k))(wrapper, call)
    return call(*args, **kwargs)
