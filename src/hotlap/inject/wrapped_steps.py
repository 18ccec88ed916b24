"""The steps of the script's optimizers, wrapped for a lever."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from hotlap.inject.identities import Identities
from hotlap.probe.undo import Undo

__all__ = ["wrap_steps"]

Around = Callable[[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


def wrap_steps(undo: Undo, around: Around) -> None:
    """``around(optimizer, step, args, kwargs)`` at each step of optimizers made, copied or unpickled from now on.

    Set on the instance as a bound method, because learning-rate schedulers wrap ``optimizer.step.__func__``.
    """
    from torch.optim import Optimizer

    seen = Identities()

    def wrap(optimizer: Any) -> None:
        if not seen.is_new(optimizer):  # its state is set again by load_state_dict
            return
        inner = vars(optimizer).get("step")  # another lever's
        wrapped = inner.__func__ if isinstance(inner, MethodType) else None

        def step(self_: Any, *a: Any, **k: Any) -> Any:
            return around(self_, MethodType(wrapped or type(self_).step, self_), a, k)

        optimizer.step = MethodType(step, optimizer)

    def then_wrapped(call: Any) -> Any:
        def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            call(optimizer, *args, **kwargs)
            wrap(optimizer)

        return made

    for name in ("__init__", "__setstate__"):
        undo.replace(Optimizer, name, then_wrapped(getattr(Optimizer, name)))
