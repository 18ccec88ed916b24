"""How a run is told in one line of a list: how it ended, and what its speedup is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotlap.report import units

__all__ = ["drift_words", "ended_words", "silence_words", "verdict_of"]


def ended_words(status: str, exit_code: int | None) -> str:
    """The status; the script's exit code with it where that is not 0."""
    return f"{status}, exit code {exit_code}" if status == "finished" and exit_code else status


def silence_words(silent_s: float | None) -> str:
    """How long a run that goes on has written nothing: it may have been killed. Empty while that is not long."""
    return "" if silent_s is None else f", silent for {units.seconds(silent_s)}"


def drift_words(drifts: int) -> str:
    """How often the guard warned; empty for never."""
    return f", {drifts} drift{'' if drifts == 1 else 's'}" if drifts else ""


def verdict_of(document: Mapping[str, Any]) -> str:
    """``proved``, ``not proved`` or ``refuted``, of a proof of either kind or of a check; empty where it says none.

    ``document``: proof.json or check.json as read. A speedup that its proof does not claim is not proved.
    """
    if isinstance(word := document.get("verdict"), str):
        return word
    claimed = document.get("claimed")
    return "" if not isinstance(claimed, bool) else "proved" if claimed else "not proved"
