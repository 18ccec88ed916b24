"""Growth of the step time at a line that computes something over a history: metrics, a plot, a dump."""

from __future__ import annotations

import re

from hotlap.diagnose.drift import find_drift, grown_lines
from hotlap.diagnose.view import View
from hotlap.records.findings import Drift, Where

__all__ = ["metric_growth"]

_PHASES = ("residual", "logging", "sync")
_METRIC = re.compile(
    r"\b(?:mean|sum|median|std|var|stack|cat|concat\w*|vstack|hstack|array|as_tensor|tensor|sorted|sort|percentile"
    r"|quantile|histogram|bincount|fmean|DataFrame|savetxt|dump|dumps|to_csv|plot|writerows)\("
    r"|accuracy|f1_?score|precision|recall|\bau?c\b|roc_|_score\(|metric|confusion|history|\.compute\("
)


def metric_growth(view: View) -> tuple[Drift, list[Where]] | None:
    """The growth, and the lines that compute something over a history; None when no such line grew."""
    drift = find_drift(view)
    if drift is None or not drift.growing or drift.phase not in _PHASES:
        return None
    grown = [g.where for g in grown_lines(view, drift.phase) if _METRIC.search(g.where.text)]
    return (drift, grown[: view.policy.max_where]) if grown else None
