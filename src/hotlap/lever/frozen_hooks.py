"""Module hooks that run one frozen network without gradients, in another type and layout."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hotlap.lever.contract import Target
from hotlap.lever.knob import Knob
from hotlap.lever.nested import map_tensors
from hotlap.lever.recorded_graph import Graph

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["FrozenHooks", "hook_frozen"]


class FrozenHooks:
    """Hooks of one module; copies of the module (deep ones, pickled ones) carry hooks that do nothing.

    The first call with gradients on is the script's own: where something is trained inside that is no parameter of the
    network (adapters in hooks of its layers, plain tensors), it records a graph, and ``is_trained`` is called.
    """

    def __init__(self, dtype: str, channels_last: bool, is_trained: Callable[[], None]) -> None:
        self.channels_last = channels_last
        self._dtype = dtype
        self._is_trained = is_trained
        self._watched = False
        """Whether a call with gradients on has shown that nothing is trained inside."""
        self._handles: list[Any] = []
        self._open: list[tuple[Any, Any, Any]] = []
        """Of each call that is under way: contexts that were entered, and what watches its graph."""

    def register(self, module: nn.Module) -> None:
        """Put the hooks in place."""
        before, after = _Before(self), _After(self)
        self._handles = [
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(after, with_kwargs=True, always_call=True),
        ]

    def remove(self) -> None:
        """Take them off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def begin(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        """Enter the contexts; changed arguments, or None."""
        import torch

        if torch.compiler.is_compiling():
            return None
        parameter = next(module.parameters(), None)  # None: a replica of DataParallel, which runs in its own thread
        if parameter is None or self._trains(module, (args, kwargs)):
            self._open.append((None, None, None))
            return None
        if torch.is_grad_enabled() and not self._watched:
            self._open.append((None, None, Graph(module)))
            return None
        without = torch.no_grad()
        without.__enter__()
        cast: Any = None
        kind = parameter.device.type
        if self._dtype != "fp32" and not torch.is_autocast_enabled(kind):
            cast = torch.autocast(kind, dtype=torch.bfloat16 if self._dtype == "bf16" else torch.float16)
            cast.__enter__()
        self._open.append((without, cast, None))
        if not self.channels_last:
            return None

        def last(tensor: Tensor) -> Tensor:
            is_image = tensor.dim() == 4 and tensor.is_floating_point()
            return tensor.contiguous(memory_format=torch.channels_last) if is_image else tensor

        return tuple(map_tensors(a, last) for a in args), {k: map_tensors(v, last) for k, v in kwargs.items()}

    def end(self, output: Any) -> Any:
        """Leave the contexts (also after an exception); the output in fp32, or None to leave it."""
        import torch

        if torch.compiler.is_compiling() or not self._open:
            return None
        without, cast, graph = self._open.pop()
        if graph is not None and output is not None:  # None: it has failed
            self._watched = True
            if graph.was_recorded(output):
                self._is_trained()
        if without is None:
            return None
        if cast is not None:
            cast.__exit__(None, None, None)
        try:
            if cast is None or output is None:
                return None
            low = torch.bfloat16 if self._dtype == "bf16" else torch.float16
            return map_tensors(output, lambda t: t.float() if t.dtype is low else t)
        finally:
            without.__exit__(None, None, None)

    def _trains(self, module: nn.Module, given: Any) -> bool:
        """Whether gradients go through this call after all: to its input, or to weights that were unfrozen."""
        import torch

        found = [p.requires_grad for p in module.parameters()]
        if torch.is_grad_enabled():

            def look(tensor: Tensor) -> Tensor:
                found.append(tensor.requires_grad)
                return tensor

            map_tensors(given, look)
        return any(found)


class _Before:
    def __init__(self, hooks: FrozenHooks | None) -> None:
        self._hooks = hooks

    def __call__(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        return None if self._hooks is None else self._hooks.begin(module, args, kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None,)


class _After:
    def __init__(self, hooks: FrozenHooks | None) -> None:
        self._hooks = hooks

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        return None if self._hooks is None else self._hooks.end(output)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None,)


def hook_frozen(target: Target, module: nn.Module, dtype: str, channels_last: bool) -> None:
    """Hooks, and the layout, as one change of ``target``."""
    import torch

    met = weakref.ref(module)

    def give_up() -> None:
        there = met()
        assert there is not None, "a network is called while it is alive"
        switch(there, False)
        target.unfit(f"something that is no parameter of {type(there).__name__} is trained inside")
        target.changed(-1)

    hooks = FrozenHooks(dtype, channels_last, give_up)

    def switch(module: nn.Module, on: Any) -> None:
        if channels_last:
            layout = torch.channels_last if on else torch.contiguous_format
            module.to(memory_format=layout)  # type: ignore[call-overload]
        if on:
            hooks.register(module)
        else:
            hooks.remove()

    target.replace(Knob.of(module, False, switch), "value", True)
