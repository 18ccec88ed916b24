"""How well an order mixes, as a number: 1.0 is a full permutation, 0.0 the order on disk."""

from __future__ import annotations

import numpy as np

from hotlap.pack.reader import Indices

__all__ = ["mixing"]


def mixing(rows: Indices, batch: int = 128) -> float:
    """Chance that two rows of a batch come from different stretches of ``batch`` rows, relative to a permutation.

    Data sets lie sorted by class or by source, so rows of one stretch are alike: a batch of few stretches is a batch of
    few classes.
    """
    whole = len(rows) // batch * batch
    if whole == 0 or batch < 2:
        return 1.0
    stretches = -(-(int(rows.max()) + 1) // batch)
    which = np.repeat(np.arange(whole // batch), batch) * stretches + rows[:whole] // batch
    together = np.unique(which, return_counts=True)[1].astype(np.float64)
    same = (together * (together - 1)).sum() / (whole * (batch - 1))
    by_chance = (batch - 1) / max(batch * stretches - 1, 1)
    return float((1 - same) / (1 - by_chance)) if by_chance < 1 else 1.0
