"""Which candidate to try first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hotlap.plan.match import Candidate
from hotlap.plan.predict import middle_s
from hotlap.records.plan import PRESERVES

__all__ = ["SLOW_START_S", "order"]

SLOW_START_S = 5.0
"""A lever that takes longer to start (compilation) is tried after the others: given up, it would leave them no time.
Unless it promises ..."""
_WORTH_THE_START = 5.0
"""... so many times what the others do."""
_STARTUP_SHARE_MOST = 0.5
"""Of the budget left: a lever whose start alone takes more is not tried."""
_TIE = 0.02
"""Predictions this close are a tie; the safer lever goes first."""


def order(
    candidates: Sequence[Candidate],
    budget_s: float | None = None,
    steps: int | None = None,
    again: Collection[str] = (),
) -> list[Candidate]:
    """Best predicted first; on a tie the one that changes less (bits, maths, distribution, goal), then by id.

    ``budget_s``: seconds left for trials, None unlimited. ``steps``: how many steps the user's run will take, None
    unknown. ``again``: levers that were tried before (another setting, a second look), which come after the others, but
    before what starts slowly. Candidates whose start-up (compilation) the budget or the run cannot pay for are left
    out.
    """
    worth = [c for c in candidates if _pays(c, budget_s, steps)]
    slow = [c for c in worth if c.gain.startup_s > SLOW_START_S]
    most = max((c.predicted - 1.0 for c in worth if c not in slow), default=0.0)
    late = [c for c in slow if c.predicted - 1.0 < _WORTH_THE_START * most]

    def rank(c: Candidate) -> tuple[bool, bool, int, int, str]:
        return c in late, c.lever in again, -round(c.predicted / _TIE), PRESERVES.index(c.preserves), c.lever

    return sorted(worth, key=rank)


def _pays(candidate: Candidate, budget_s: float | None, steps: int | None) -> bool:
    """Whether its start takes no more than its share of the seconds left, and less than it saves over the run."""
    startup = candidate.gain.startup_s
    if startup <= 0:
        return True
    if budget_s is not None and startup > _STARTUP_SHARE_MOST * budget_s:
        return False
    return steps is None or startup < middle_s(candidate.gain) * steps
