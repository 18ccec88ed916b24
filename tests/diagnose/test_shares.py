"""What a step takes is what the clock says of all steps; the closely watched ones say where it goes."""

from __future__ import annotations

import pytest

from hotlap.diagnose.policy import Policy
from hotlap.diagnose.shares import measure
from hotlap.diagnose.steady import find_steady
from hotlap.records.rows import PHASES, Step


def _row(i: int, n: int, each_ns: int, watched_ns: dict[str, int]) -> Step:
    return Step(i=i, n=n, t=0, w=n * each_ns, p=[watched_ns.get(name) for name in PHASES], s=n, m=n)


def test_watched_steps_that_took_longer_do_not_slow_the_whole() -> None:
    long_rows = [_row(i * 100 + 1, 99, 400_000, {}) for i in range(20)]
    watched = [_row(i * 100, 1, 600_000, {"forward": 400_000, "backward": 200_000}) for i in range(20)]
    rows = sorted([*long_rows, *watched], key=lambda row: row.i)
    times = measure(rows, find_steady(rows, list(PHASES), Policy()), [], list(PHASES), None)
    assert times.step_s == pytest.approx(402e-6, rel=0.01)
    assert times.shares["forward"] == pytest.approx(2 / 3, rel=0.01)
    assert times.shares["backward"] == pytest.approx(1 / 3, rel=0.01)
    assert sum(value or 0.0 for value in times.phase_s.values()) <= times.step_s * (1 + 1e-9)
