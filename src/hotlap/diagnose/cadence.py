"""How often periodic work may come, in numbers: what it costs now, and when it would cost a hundredth of the time."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.periodic import Periodic
from hotlap.diagnose.view import View

__all__ = ["cadence_advice", "cadence_evidence"]

CHEAP_FRAC = 0.01
"""Part of the wall time that nobody would miss."""


def _cheap_every(view: View, work: Periodic) -> int:
    """Steps between two, at which the work takes CHEAP_FRAC of the wall time."""
    return max(1, round(work.each_s * (1.0 - CHEAP_FRAC) / CHEAP_FRAC / view.times.steady_s))


def cadence_evidence(view: View, work: Periodic) -> dict[str, Any]:
    """Numbers of one kind of periodic work."""
    found: dict[str, Any] = {"each_s": work.each_s, "every_steps": work.every, "seen": work.count}
    if work.every:
        found["wall_frac"] = view.share(work.per_step_s)
        found["steps_for_a_hundredth"] = _cheap_every(view, work)
    return found


def cadence_advice(view: View, work: Periodic) -> str:
    """Half a sentence: ``; every 2000 steps it would take a hundredth of the time``; empty where it does by now."""
    if not work.every or _cheap_every(view, work) <= work.every:
        return ""
    return f"; every {_cheap_every(view, work)} steps it would take a hundredth of the time"
