"""The closure that an optimizer's step may be given: it computes the loss and the gradients inside of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotlap.lever.contract import Target

__all__ = ["Arguments", "behind_closure"]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def behind_closure(
    then: Callable[[], None], target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Arguments | None:
    """The arguments of a step with a closure behind which ``then()`` is called, each time; None where none is given.

    An error of ``then`` is the lever's, and the script's closure has done what it was asked for.
    """
    closure = args[0] if args else kwargs.get("closure")
    if not callable(closure):
        return None

    def both() -> Any:
        loss = closure()
        try:
            then()
        except Exception as err:
            target.fail(err)
        return loss

    return ((both, *args[1:]), kwargs) if args else (args, {**kwargs, "closure": both})
