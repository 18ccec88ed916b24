"""What the tests of kept parts have in common: data sets of as many rows, drawn by workers in turn."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

__all__ = ["ROWS", "UNWATCHED", "Turning"]

ROWS = 24
UNWATCHED: Any = SimpleNamespace(add=lambda loader, drawing: None)
"""In the place of MidPass, which changes torch until its target is left."""


class Turning:
    """Batches of two; what one worker was given in an epoch, the other is given in the next."""

    def __init__(self) -> None:
        self.epoch = 0

    def __len__(self) -> int:
        return ROWS // 2

    def __iter__(self) -> Iterator[list[int]]:
        first = self.epoch % 2 * 2
        self.epoch += 1
        return iter([[(row + first) % ROWS, (row + first + 1) % ROWS] for row in range(0, ROWS, 2)])
