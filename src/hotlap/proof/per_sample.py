"""Windows told in seconds per sample, for arms whose steps do not hold equally many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hotlap.records.trials import Window

__all__ = ["per_sample"]


def per_sample(windows: Sequence[Window]) -> list[Window] | None:
    """The windows with ``steady_s`` per sample, so that a ratio of two is one of samples per second.

    None when a window that counts does not know its samples.
    """
    told = []
    for window in windows:
        if window.samples > 0:
            told.append(replace(window, steady_s=window.steady_s * window.steps / window.samples))
        elif window.dropped is None:
            return None
    return told
