"""How a run is told in one line of a list: how it ended, and what its speedup is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotlap.report import units

__all__ = ["ended_words", "status_line", "verdict_of"]


def ended_words(status: str, exit_code: int | None) -> str:
    """The status; the script's exit code with it where that is not 0."""
    return f"{status}, exit code {exit_code}" if status == "finished" and exit_code else status


def status_line(status: str, exit_code: int | None, silent_s: float | None, drifts: int = 0, verdict: str = "") -> str:
    """How a run stands: its end, for how long it has written nothing (it may have been killed), how often the guard
    warned, and a verdict that is not what one expects."""
    parts = [ended_words(status, exit_code)]
    if silent_s is not None:
        parts.append(f"silent for {units.seconds(silent_s)}")
    if drifts:
        parts.append(f"{drifts} drift{'' if drifts == 1 else 's'}")
    if verdict not in ("", "proved"):
        parts.append(verdict)
    return ", ".join(parts)


def verdict_of(document: Mapping[str, Any]) -> str:
    """``proved``, ``not proved`` or ``refuted``, of a proof of either kind or of a check; empty where it says none.

    ``document``: proof.json or check.json as read. A speedup that its proof does not claim is not proved.
    """
    if isinstance(word := document.get("verdict"), str):
        return word
    claimed = document.get("claimed")
    return "" if not isinstance(claimed, bool) else "proved" if claimed else "not proved"
