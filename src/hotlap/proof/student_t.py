"""Quantiles of Student's t, for the intervals of means of few runs."""

from __future__ import annotations

__all__ = ["t_quantile"]


def t_quantile(freedom: float, level: float) -> float:
    """The value below which lies ``level`` (0..1) of Student's distribution with ``freedom`` degrees of freedom."""
    from scipy.special import stdtrit  # half a second, which a command that proves nothing need not wait for

    return float(stdtrit(freedom, level))
