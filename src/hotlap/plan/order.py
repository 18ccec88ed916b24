"""Which candidate to try first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hotlap.plan.match import Candidate
from hotlap.plan.predict import middle_s
from hotlap.records.plan import PRESERVES

__all__ = ["order"]

_STARTUP_SHARE = 0.15
"""A lever whose start alone takes more than this share of the budget left is tried after the others. A prior: the
search of a default budget has less than 200 s, what it may be lent included, so that a compiler's start (34 s, a prior,
too) comes late. Unless it promises ``_WORTH_THE_START`` times what the others do ..."""
_WORTH_THE_START = 5.0
_STARTUP_SHARE_MOST = 0.5
"""... and not at all when it takes more than this."""
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
    cheap = [c for c in candidates if _pays(c, budget_s, steps, _STARTUP_SHARE)]
    most = max((c.predicted - 1.0 for c in cheap), default=0.0)
    dear = [c for c in candidates if c not in cheap and _pays(c, budget_s, steps)]
    late = [c for c in dear if c.predicted - 1.0 < _WORTH_THE_START * most]

    def rank(c: Candidate) -> tuple[bool, bool, int, int, str]:
        return c in late, c.lever in again, -round(c.predicted / _TIE), PRESERVES.index(c.preserves), c.lever

    return sorted(cheap + dear, key=rank)


def _pays(
    candidate: Candidate, budget_s: float | None, steps: int | None = None, share: float = _STARTUP_SHARE_MOST
) -> bool:
    """Whether its start takes no more than a share of the seconds left, and less than it saves over the run."""
    startup = candidate.gain.startup_s
    if startup <= 0:
        return True
    if budget_s is not None and startup > share * budget_s:
        return False
    return steps is None or startup < middle_s(candidate.gain) * steps
