"""Is the candidate's training as good as the baseline's, by a margin, over seeds?

Final loss of a run: the mean over the last third of the steps that all compared runs have. Its difference is stated
relative to ``scale = max(|baseline's final loss|, baseline's drop from its first steps / 10)``: the plain relative
difference as a rule, but a loss near zero, or one that crosses it, is judged against how far training brought it.

Bound: Student's t, one-sided 95 %, on the differences of paired seeds; or, where the lever draws other random numbers
and pairing therefore removes nothing, on the pooled deviation of both arms' seeds (all of the baseline's count). The
candidate is ``proved`` when the upper bound is within the margin, ``refuted`` when the lower bound is beyond it or a
loss is NaN or infinite, ``not proved`` otherwise. One seed has no spread: it can refute (five margins worse), never
prove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hotlap.proof.student_t import t_quantile
from hotlap.records.proof import Quality

__all__ = [
    "FLOOR_MARGIN_FRAC",
    "LEVEL",
    "MIN_STEPS",
    "Losses",
    "decide",
    "default_margin",
    "difference",
    "final_losses",
    "judge",
    "listed",
    "loss_scale",
]

Losses = Sequence[Sequence[float]]
"""One loss curve per seed: the loss of each step from the first on."""

FLOOR_MARGIN_FRAC = 0.02
"""Least margin: below this, runs of one script on two machines differ as much."""
LEVEL = 0.95
"""One-sided confidence of the bounds, the usual one of non-inferiority trials."""
MIN_STEPS = 9
"""Fewer common steps leave fewer than three in the last third."""
_HOPELESS = 5.0
"""Margins by which a single seed must be worse to be refuted without a spread."""


def common_steps(*arms: Losses) -> int:
    """Steps that every curve of every arm has."""
    return min((len(curve) for arm in arms for curve in arm), default=0)


def final_losses(arm: Losses, steps: int) -> np.ndarray:
    """Mean over the last third of the first ``steps`` steps, shape (seeds,)."""
    return np.array([float(np.mean(curve[steps - max(1, steps // 3) : steps])) for curve in arm], dtype=np.float64)


def loss_scale(baseline: Losses, steps: int) -> float:
    """What a difference of final losses is divided by (see the module's text); 0.0 only when all losses are 0."""
    final = float(final_losses(baseline, steps).mean())
    first = max(1, steps // 20)
    start = float(np.mean([np.mean(curve[:first]) for curve in baseline]))
    return max(abs(final), abs(start - final) / 10.0)


def default_margin(baseline_final: np.ndarray, scale: float) -> float:
    """The baseline's own deviation between seeds, relative, and at least ``FLOOR_MARGIN_FRAC``."""
    if len(baseline_final) < 2:
        return FLOOR_MARGIN_FRAC
    return max(FLOOR_MARGIN_FRAC, float(baseline_final.std(ddof=1)) / scale)


def judge(
    baseline: Losses, candidate: Losses, margin_frac: float | None = None, paired: bool = True,
    names: Sequence[int] = (),
) -> Quality:  # fmt: skip
    """Verdict on the candidate's quality; curve k of either arm has the same seed where ``paired``.

    The baseline may have more seeds than the candidate; they serve the margin (and the pooled bound).
    ``margin_frac``: how much worse, relative, still counts as the same; None: :func:`default_margin`. ``names``: the
    seeds as the user knows them, one per curve.
    """
    raw = {"baseline": listed(baseline), "candidate": listed(candidate)}
    seeds = min(len(baseline), len(candidate))
    steps = common_steps(baseline, candidate)

    def verdict(word: str, summary: str, *numbers: float | None) -> Quality:
        delta, upper, margin = numbers if numbers else (None, None, margin_frac)
        return Quality(word, "non-inferior", summary, delta, upper, margin, seeds, steps, raw=raw)  # type: ignore[arg-type]

    if seeds == 0 or steps < MIN_STEPS:
        return verdict(
            "not proved", f"Losses of {steps} steps over {seeds} seeds: {MIN_STEPS} steps are the least to judge."
        )
    if not np.isfinite([curve[:steps] for curve in baseline]).all():
        return verdict("not proved", "The baseline's own loss is NaN or infinite: there is nothing to compare with.")
    broken = [(k, i) for k, c in enumerate(candidate) for i, v in enumerate(c[:steps]) if not math.isfinite(v)]
    if broken:
        curve, step = broken[0]
        where = f"of seed {names[curve]}" if names else f"in run {curve + 1} of {len(candidate)}"
        return verdict("refuted", f"The candidate's loss is NaN or infinite at step {step} {where}.")
    scale = loss_scale(baseline, steps)
    if scale == 0.0:
        return verdict("not proved", "The baseline's loss is 0 at every step: it says nothing about quality.")
    base, cand = final_losses(baseline, steps), final_losses(candidate, steps)
    margin = margin_frac if margin_frac is not None else default_margin(base, scale)
    delta, half = difference(base, cand, paired)
    return verdict(*decide(delta / scale, half / scale, margin))


def difference(base: np.ndarray, cand: np.ndarray, paired: bool) -> tuple[float, float]:
    """Mean difference, one value a seed, and the half width of its one-sided bounds (infinite with one seed)."""
    n = min(len(base), len(cand))
    if paired:
        difference = cand[:n] - base[:n]
        if n < 2:
            return float(difference.mean()), math.inf
        error = float(difference.std(ddof=1)) / math.sqrt(n)
        return float(difference.mean()), t_quantile(n - 1, LEVEL) * error
    delta = float(cand.mean() - base.mean())
    freedom = len(base) + len(cand) - 2
    if n < 2:
        return delta, math.inf
    squares = float(((base - base.mean()) ** 2).sum() + ((cand - cand.mean()) ** 2).sum())
    error = math.sqrt(squares / freedom * (1.0 / len(base) + 1.0 / len(cand)))
    return delta, t_quantile(freedom, LEVEL) * error


def decide(delta: float, half: float, margin: float, what: str = "loss") -> tuple[str, str, float, float | None, float]:
    """Verdict, summary, delta, upper bound, margin; all relative."""
    if math.isinf(half):
        if delta > _HOPELESS * margin:
            return "refuted", "Far worse, in the one seed that there is.", delta, None, margin
        return "not proved", "One seed shows no spread.", delta, None, margin
    upper, lower = delta + half, delta - half
    if upper <= margin:
        return "proved", f"The {what} is non-inferior, within the margin.", delta, upper, margin
    if lower > margin:
        return "refuted", f"The {what} is worse, beyond the margin.", delta, upper, margin
    return "not proved", "Too few seeds, or too short ones, to tell.", delta, upper, margin


def listed(arm: Losses) -> list[list[float | None]]:
    """Curves for the document, which holds no NaN: None stands for it."""
    return [[v if math.isfinite(v) else None for v in curve] for curve in arm]
