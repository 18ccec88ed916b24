"""How a run is told in one line of a list: how it ended, and what its speedup is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hotlap.records.trials import Interval
from hotlap.report import units

__all__ = ["ended_words", "measured_speedup", "status_line", "verdict_of"]


def ended_words(status: str, exit_code: int | None) -> str:
    """The status; the script's exit code with it where that is not 0."""
    return f"{status}, exit code {exit_code}" if status == "finished" and exit_code else status


def status_line(status: str, exit_code: int | None, silent_s: float | None, drifts: int = 0, verdict: str = "") -> str:
    """How a run stands: its end, for how long it has written nothing (it may have been killed), how often the guard
    warned, and a verdict that is not what one expects."""
    parts = [ended_words(status, exit_code)]
    if silent_s is not None:
        parts.append(f"silent for {_about(silent_s)}")
    if drifts:
        parts.append(f"{drifts} drift{'' if drifts == 1 else 's'}")
    if verdict not in ("", "proved"):
        parts.append(verdict)
    return ", ".join(parts)


def _about(seconds: float) -> str:
    """A long time in one unit, which seldom changes: screen readers say a status aloud whenever it does."""
    for limit, each, unit in ((7200, 60, "min"), (172800, 3600, "h"), (math.inf, 86400, "d")):
        if seconds < limit:
            return f"{int(seconds // each):,} {unit}"
    return units.NONE


def measured_speedup(speedup: Interval | None) -> Interval | None:
    """What a proof measured; None where it measured nothing: that of an empty plan says 1.0, from 1.0 to 1.0."""
    return speedup if speedup is not None and speedup.low < speedup.high else None


def verdict_of(document: Mapping[str, Any]) -> str:
    """``proved``, ``not proved`` or ``refuted``, of a proof of either kind or of a check; empty where it says none.

    ``document``: proof.json or check.json as read, its speedup decoded. A speedup that its proof does not claim is not
    proved; where no lever was kept there was nothing to prove.
    """
    if isinstance(word := document.get("verdict"), str):
        return word
    claimed, speedup = document.get("claimed"), document.get("speedup")
    if not isinstance(claimed, bool) or (isinstance(speedup, Interval) and measured_speedup(speedup) is None):
        return ""
    return "proved" if claimed else "not proved"
