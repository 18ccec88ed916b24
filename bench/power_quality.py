"""How often quality is called non-inferior although it is not, on simulated losses and the product's verdict.

A training's curve falls, differs from seed to seed for its whole length, and trembles from step to step. The candidate
shares the seed's part with its baseline where it draws the same random numbers (paired), and is worse by a true share.
A verdict is false when it says "proved" while the true difference is beyond the margin that it names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotlap.lap.options import Options
from hotlap.proof.noninferior import FLOOR_MARGIN_FRAC, judge

__all__ = ["CASES", "Case", "Rates", "false_rates"]

STEPS = 60
PROVE_SEEDS = 3
"""Of `hotlap prove`."""


@dataclass(frozen=True)
class Case:
    """One kind of training, and how its quality is judged."""

    name: str
    seeds: int
    seed_sd: float
    """Relative deviation of the final loss between seeds."""
    pair_sd: float
    """The same of what pairing does not remove."""
    paired: bool
    margin: float | None
    """As stated; None: the product's own, from the baseline's spread."""
    binding: float = 0.7
    """How much of a step's noise stays in the next one."""


@dataclass(frozen=True)
class Rates:
    """Counts over simulated verdicts."""

    false: int
    true: int
    """Proved where there is no difference."""
    n: int
    true_delta: float
    """The difference at which ``false`` was counted: the worst of those tried."""


def _cases() -> list[Case]:
    found = []
    for seeds in (PROVE_SEEDS, Options([]).seeds):
        found += [
            Case(f"margin stated, paired, {seeds} seeds", seeds, 0.01, 0.004, True, FLOOR_MARGIN_FRAC),
            Case(f"margin stated, seeds differ, {seeds} seeds", seeds, 0.01, 0.0, False, FLOOR_MARGIN_FRAC),
            Case(f"margin of its own, paired, {seeds} seeds", seeds, 0.03, 0.01, True, None),
            Case(f"margin of its own, seeds differ, {seeds} seeds", seeds, 0.03, 0.0, False, None),
        ]
    return found


CASES = _cases()


def _curves(g: np.random.Generator, case: Case, seed_part: np.ndarray, worse: float) -> list[list[float]]:
    """Losses of each seed: a fall to a level of 1, times the seed's part, times a trembling of 1 % of its own."""
    fall = 1.0 + 2.0 * np.exp(-np.arange(STEPS) / 6.0)
    out = []
    for part in seed_part:
        fresh = 0.01 * np.sqrt(1 - case.binding**2) * g.standard_normal(STEPS)
        noise = np.empty(STEPS)
        last = 0.01 * float(g.standard_normal())
        for i in range(STEPS):
            last = case.binding * last + float(fresh[i])
            noise[i] = last
        out.append([float(v) for v in fall * (1.0 + part + worse) * np.exp(noise)])
    return out


def _verdict(g: np.random.Generator, case: Case, worse: float) -> tuple[bool, bool]:
    """Whether it was called proved, and whether the truth lies beyond the margin that was named."""
    own = case.seed_sd * g.standard_normal(case.seeds)
    other = own + case.pair_sd * g.standard_normal(case.seeds)
    if not case.paired:
        other = case.seed_sd * g.standard_normal(case.seeds)
    found = judge(_curves(g, case, own, 0.0), _curves(g, case, other, worse), case.margin, case.paired)
    assert found.margin_frac is not None
    return found.verdict == "proved", worse >= found.margin_frac


def false_rates(case: Case, n: int, g: np.random.Generator) -> Rates:
    """The worst true difference among several at and beyond the margin, ``n`` verdicts each."""
    margin = case.margin if case.margin is not None else max(FLOOR_MARGIN_FRAC, case.seed_sd)
    worst, at = -1, 0.0
    for factor in (0.7, 1.0, 1.3) if case.margin is None else (1.0,):
        false = sum(proved and beyond for proved, beyond in (_verdict(g, case, factor * margin) for _ in range(n)))
        if false > worst:
            worst, at = false, factor * margin
    return Rates(worst, sum(_verdict(g, case, 0.0)[0] for _ in range(n)), n, at)
