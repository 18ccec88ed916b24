"""A module that is compiled in place, and runs as before where the compiler fails."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from hotlap.lever.contract import Setting, Target

if TYPE_CHECKING:
    from torch import nn

__all__ = ["compile_in_place"]


def compile_in_place(module: nn.Module, frozen: Iterable[nn.Module], target: Target, setting: Setting) -> None:
    """As ``module.compile(**setting)``, unless it is compiled already. ``frozen``: networks that are not trained, which
    it may call beside its own parts."""
    import torch

    if getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod"):
        return
    _keep_apart([*frozen, *list(module.modules())[1:]], target)
    compiled = torch.compile(_to_trace(module), **setting)
    target.replace(module, "_compiled_call_impl", _Guarded(compiled, module, target))


def _to_trace(module: nn.Module) -> Callable[..., Any]:
    """The module's call; of torch's own classes (``nn.Sequential``) behind a frame that the compiler does not skip: of
    such a model ``module.compile()`` compiles nothing (seen with torch 2.13)."""
    call: Callable[..., Any] = module._call_impl
    if not getattr(type(module).forward, "__module__", "").startswith("torch.nn.modules."):
        return call

    def traced(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return traced


def _keep_apart(modules: Iterable[nn.Module], target: Target) -> None:
    """Networks that another lever treats (a teacher that is remembered) are called as they are: in the graph, what
    they computed at the first call would be computed at each."""
    import torch

    for module in modules:
        if "forward" in vars(module) and getattr(module, "_compiled_call_impl", None) is None:
            eager = torch.compiler.disable(module._call_impl)  # type: ignore[no-untyped-call]
            target.replace(module, "_compiled_call_impl", eager)
            target.changed(-1)  # it is no change of its own


class _Guarded:
    """The compiled call, until the compiler fails or is seen to compile nothing: then the plain one, for good."""

    def __init__(self, compiled: Any, module: nn.Module, target: Target) -> None:
        self._compiled = compiled
        self._module = weakref.ref(module)
        self._target = target
        self._called = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import torch
        from torch._dynamo.exc import TorchDynamoException

        module: Any = self._module()
        assert module is not None, "a model is called while it is alive"
        traced = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        if self._compiled is not None and not traced:  # an export is of the model as it is
            try:
                out = self._compiled(*args, **kwargs)
            except TorchDynamoException as err:
                said = (str(err).strip() or type(err).__name__).splitlines()[0].rstrip(".")
                self._give_up(f"torch.compile cannot compile {type(module).__name__}: {said:.160}.")
            else:
                if not self._called and _graphs() == 0:  # the compiler skips what it meets there, and does not say so
                    self._give_up(f"torch.compile compiles nothing of {type(module).__name__}.")
                self._called = True
                return out
        return module._call_impl(*args, **kwargs)

    def _give_up(self, why: str) -> None:
        self._compiled = None
        self._target.unfit(why)
        self._target.changed(-1)

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """A copy of the model is not compiled (as with ``module.compile()``)."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _nothing, ()


def _graphs() -> int:
    """Graphs that were compiled in this process, of any root: those of one class share them."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def _nothing() -> None:
    """What a pickled compiled call becomes."""
