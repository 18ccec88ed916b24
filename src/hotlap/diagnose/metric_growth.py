"""Growth of the step time at a line that computes something over a history: metrics, a plot, a dump."""

from __future__ import annotations

import re

from hotlap.diagnose.drift import find_drift, grown_lines
from hotlap.diagnose.host import step_functions
from hotlap.diagnose.view import View
from hotlap.records.findings import Drift, Where

__all__ = ["metric_growth"]

_PHASES = ("residual", "logging", "sync")
_METRIC = re.compile(
    r"\b(?:mean|sum|median|std|var|array|as_tensor|tensor|sorted|sort|percentile"
    r"|quantile|histogram|bincount|fmean|DataFrame|savetxt|dump|dumps|to_csv|plot|writerows)\("
    r"|\b(?:stack|cat|concat\w*|vstack|hstack)\((?!\s*[\[(](?!\s*\*|.*\bfor\b))"
    r"|accuracy|f1_?score|precision|recall|\bau?c\b|roc_|_score\(|metric|confusion|history|\.compute\("
)
_TENSOR = re.compile(r"\b(?:stack|cat|concat\w*|vstack|hstack)\(\s*[\[(]")
"""A concatenation of tensors one can count (``cat([bank, x])``) is no history: what grows there is the tensor."""


def metric_growth(view: View) -> tuple[Drift, list[Where]] | None:
    """The growth, and the lines that compute something over a history; None when no such line grew.

    With one such line all lines of its function that grew, most growth first; of the function that runs the step it is
    the lines alone.
    """
    drift = find_drift(view)
    if drift is None or not drift.growing or drift.phase not in _PHASES:
        return None
    lines = [g.where for g in grown_lines(view, drift.phase)]
    if lines and _TENSOR.search(lines[0].text) and not _METRIC.search(lines[0].text):
        return None  # other lines grow less, by what they read of it
    within = {(w.file, w.function) for w in lines if _METRIC.search(w.text)} - step_functions(view)
    grown = [w for w in lines if _METRIC.search(w.text) or (w.file, w.function) in within]
    return (drift, grown[: view.policy.max_where]) if grown else None
