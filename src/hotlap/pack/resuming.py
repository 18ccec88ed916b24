"""Whether a loader can go on where a saved one stood: it must read the very rows that were left."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from hotlap.records.errors import HotlapError

__all__ = ["check_state"]

_COUNTS = ("epoch", "batch", "batch_size", "rows", "world", "seed")


def check_state(state: Mapping[str, Any], mine: Mapping[str, Any], order: object) -> None:
    """HotlapError where ``state`` is no loader's, or would read other rows in this one (``mine``) than were left."""
    wrong = [key for key in _COUNTS if not _is_whole(state.get(key)) or (state[key] < 0 and key != "seed")]
    if wrong:
        raise HotlapError(
            f"The state is not a Loader's: {wrong[0]!r} is {state.get(wrong[0], 'missing')!r} in it.",
            "Give load_state_dict what state_dict() returned.",
        )
    for key in ("batch_size", "rows", "world", "seed"):
        if state[key] != mine[key]:
            raise HotlapError(f"The saved loader has {key} {state[key]}, this one {mine[key]}: it cannot go on.")
    if state.get("order", mine["order"]) != mine["order"]:
        raise HotlapError(
            f"The saved loader reads in another order than {type(order).__name__} as it is set here: it cannot go on.",
            "Give the loader the order (and its seed) that it had when the state was taken.",
        )


def _is_whole(value: object) -> bool:
    """Whole numbers of numpy and torch too: some checkpoints make those of plain ones."""
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True
