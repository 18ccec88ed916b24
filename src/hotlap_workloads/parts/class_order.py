"""Batches in which a class stands once, or as one group of several rows."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["ClassGroups"]


@dataclass(frozen=True)
class ClassGroups:
    """Each class's rows, shuffled and cut into groups of ``grain``; a batch holds at most one group of a class.

    Only when a batch has more places than there are classes, a class comes again: as often as needed, evenly.
    ``labels[row]`` is the class of a row. Rows left over in a class have their turn in another epoch.
    """

    labels: Sequence[int]
    seed: int
    grain: int = 1

    def rows(self, epoch: int) -> list[int]:
        random = np.random.default_rng([self.seed, epoch])
        by_class: dict[int, list[int]] = {}
        for row in random.permutation(len(self.labels)):
            by_class.setdefault(self.labels[row], []).append(int(row))
        groups = [
            rows[start : start + self.grain]
            for rows in by_class.values()
            for start in range(0, len(rows) - self.grain + 1, self.grain)
        ]
        return [row for number in random.permutation(len(groups)) for row in groups[number]]

    def batches(self, rows: Sequence[int], batch_size: int) -> list[list[int]]:
        """Whoever does not fit into a batch is the first of the next. Only the last batches can be incomplete."""
        places = batch_size // self.grain
        most = -(-places // len(set(self.labels)))
        waiting = deque(tuple(rows[i : i + self.grain]) for i in range(0, len(rows), self.grain))
        out = []
        while waiting:
            batch: list[tuple[int, ...]] = []
            later: list[tuple[int, ...]] = []
            count: Counter[int] = Counter()
            while waiting and len(batch) < places:
                group = waiting.popleft()
                label = self.labels[group[0]]
                fits = count[label] < most
                (batch if fits else later).append(group)
                count[label] += fits
            waiting.extendleft(reversed(later))
            out.append([row for group in batch for row in group])
        return out
