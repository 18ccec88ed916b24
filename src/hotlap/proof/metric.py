"""Is the candidate as good by the script's own measure? Non-inferiority of one number per seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hotlap.proof.noninferior import decide, default_margin, difference
from hotlap.records.seed_proof import MetricQuality

__all__ = ["judge_metric"]


def judge_metric(
    baseline: Sequence[float | None],
    candidate: Sequence[float | None],
    pattern: str,
    lower_is_better: bool,
    margin_frac: float | None,
    paired: bool,
) -> MetricQuality:
    """Verdict on the metric of both arms, seed by seed; None where it was not found in the output.

    Everything is relative to the baseline's mean, and turned so that a positive difference is worse. ``margin_frac``
    None: the baseline's own deviation between seeds, 2 % at least.
    """

    def verdict(word: str, summary: str, *numbers: float | None) -> MetricQuality:
        delta, upper, margin = numbers if numbers else (None, None, margin_frac)
        return MetricQuality(
            pattern, lower_is_better, word, summary, list(baseline), list(candidate), delta, upper, margin  # type: ignore[arg-type]
        )  # fmt: skip

    pairs = [(b, c) for b, c in zip(baseline, candidate, strict=True) if b is not None and c is not None]
    if not any(b is not None for b in baseline):
        return verdict("not proved", "The pattern matched no number in the baseline's output.")
    if not any(c is not None for c in candidate):
        return verdict("not proved", "The pattern matched no number in the candidate's output.")
    lost = sum(b is not None and c is None for b, c in zip(baseline, candidate, strict=True))
    if lost:  # the seeds left would be those in which all went well
        return verdict("not proved", f"In {lost} of {len(baseline)} seeds only the baseline printed the metric.")
    if not pairs:
        return verdict("not proved", "No seed has the metric in both arms.")
    turn = 1.0 if lower_is_better else -1.0
    base, cand = (turn * np.array(values, dtype=np.float64) for values in zip(*pairs, strict=True))
    scale = abs(float(base.mean()))
    if scale == 0.0:
        if len(pairs) > 1 and bool((base == cand).all()):
            return verdict("proved", "The metric is the same in every seed.", 0.0, 0.0, margin_frac)
        return verdict("not proved", "The baseline's metric is 0 on average: there is nothing to relate to.")
    margin = margin_frac if margin_frac is not None else default_margin(base, scale)
    delta, half = difference(base, cand, paired)
    found = decide(delta / scale, half / scale, margin, "metric")
    if bool((base == cand).all()) and found[0] == "proved":
        return verdict("proved", "The metric is the same in every seed.", *found[2:])
    return verdict(*found)
