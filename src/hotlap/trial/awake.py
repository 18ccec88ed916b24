"""An arm's own clock: seconds since its launch in which it ran, without those in which it was frozen. Pure."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Thaws", "awake_s"]

Thaws = Sequence[tuple[int, int | None]]
"""(thaw, freeze) in monotonic nanoseconds, oldest first; the first thaw is the launch."""


def awake_s(thaws: Thaws, times: Sequence[int]) -> list[float]:
    """Seconds awake from the launch until each of ``times`` (monotonic nanoseconds, ascending).

    A time inside a freeze counts as the moment of the freeze.
    """
    found: list[float] = []
    turn, before = 0, 0
    for t in times:
        while turn < len(thaws):
            frozen = thaws[turn][1]
            if frozen is None or t <= frozen:
                break
            before += frozen - thaws[turn][0]
            turn += 1
        inside = max(0, t - thaws[turn][0]) if turn < len(thaws) else 0
        found.append((before + inside) / 1e9)
    return found
