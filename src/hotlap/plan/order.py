"""Which candidate to try first."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.plan.match import Candidate
from hotlap.plan.predict import middle_s
from hotlap.records.plan import PRESERVES

__all__ = ["order"]

_STARTUP_SHARE = 0.25
"""A lever whose start alone takes more than this share of the budget left is not tried before others ..."""
_STARTUP_SHARE_LAST = 0.5
"""... and not at all when it takes more than this."""
_TIE = 0.02
"""Predictions this close are a tie; the safer lever goes first."""


def order(
    candidates: Sequence[Candidate], budget_s: float | None = None, steps: int | None = None, last: bool = False
) -> list[Candidate]:
    """Best predicted first; on a tie the one that changes less (bits, maths, distribution, goal), then by id.

    ``budget_s``: seconds left for trials, None unlimited. ``steps``: how many steps the user's run will take, None
    unknown. Candidates whose start-up (compilation) the budget or the run cannot pay for are left out. ``last``: there
    is nothing else to spend the budget on.
    """
    share = _STARTUP_SHARE_LAST if last else _STARTUP_SHARE
    affordable = [c for c in candidates if _pays(c, None if budget_s is None else share * budget_s, steps)]

    def rank(c: Candidate) -> tuple[int, int, str]:
        return -round(c.predicted / _TIE), PRESERVES.index(c.preserves), c.lever

    return sorted(affordable, key=rank)


def _pays(candidate: Candidate, most_s: float | None, steps: int | None) -> bool:
    startup = candidate.gain.startup_s
    if startup <= 0:
        return True
    if most_s is not None and startup > most_s:
        return False
    return steps is None or startup < middle_s(candidate.gain) * steps
