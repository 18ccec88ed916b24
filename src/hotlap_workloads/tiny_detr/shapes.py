"""Sizes of images: to which one each is scaled, to which one a batch is padded, and which images share a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["STEP_PX", "ShapeBuckets", "fitted", "padded"]

STEP_PX = 32
"""Sides of padded batches, and the short sides of multi_scale, are multiples of this, as DETR's scales are."""


def fitted(size: tuple[int, int], short: int, longest: int) -> tuple[int, int]:
    """(width, height) scaled so that the short side is ``short``, or the long one ``longest`` if that is less."""
    factor = min(short / min(size), longest / max(size))
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def padded(sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The smallest (width, height) in whole steps that holds them all."""
    width, height = (max(size[axis] for size in sizes) for axis in (0, 1))
    return -(-width // STEP_PX) * STEP_PX, -(-height // STEP_PX) * STEP_PX


@dataclass(frozen=True)
class ShapeBuckets:
    """Every row once, fully shuffled, then put into batches of one shape: ``shapes[row]`` is its padded size.

    What is left over in a shape shares batches with its neighbours in size. The incomplete last batch is cut from the
    shuffled rows *before* that, so that with drop_last no rare shape is left out at every epoch.
    """

    shapes: Sequence[tuple[int, int]]
    seed: int
    grain: int = 1

    def rows(self, epoch: int) -> list[int]:
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.shapes))
        return [int(row) for row in order]

    def batches(self, rows: Sequence[int], batch_size: int) -> list[list[int]]:
        """In the order of their first rows; the incomplete one is the last."""
        whole = len(rows) // batch_size * batch_size
        place = {row: number for number, row in enumerate(rows)}
        waiting: dict[tuple[int, int], list[int]] = {}
        out = []
        for row in rows[:whole]:
            group = waiting.setdefault(self.shapes[row], [])
            group.append(row)
            if len(group) == batch_size:
                out.append(waiting.pop(self.shapes[row]))
        left = [row for shape in sorted(waiting) for row in waiting[shape]]
        out += [left[begin : begin + batch_size] for begin in range(0, len(left), batch_size)]
        out.sort(key=lambda batch: place[batch[0]])
        return [*out, list(rows[whole:])] if rows[whole:] else out
