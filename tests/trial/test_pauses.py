"""Pauses that come round are found, and a trial counts them whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trial_support import QUICK, MakeArm

from hotlap.proof.speedup import ratio_interval
from hotlap.records.rows import PHASES, Step
from hotlap.trial.compare import compare
from hotlap.trial.pauses import LONGEST_S, Cycle, find_cycle
from hotlap.trial.windows import Turn, to_window

STEP_S = 0.02


def rows(count: int, pauses: dict[int, float]) -> list[Step]:
    """``count`` steps of 20 ms, some of them longer by the seconds given; the first one much longer, as it warms up."""
    begin, found = 0, []
    for i in range(count):
        wall = round((STEP_S + pauses.get(i, 0.0) + (0.5 if i == 0 else 0.0)) * 1e9)
        found.append(Step(i, 1, begin, wall, [0] * len(PHASES), 4, 1))
        begin += wall
    return found


def every(n: int, count: int, seconds: float = 1.0) -> dict[int, float]:
    return dict.fromkeys(range(n - 1, count, n), seconds)


def test_a_pause_every_so_many_steps() -> None:
    found = find_cycle(rows(80, every(21, 80)))
    assert found.steps == 21 and found.seconds == pytest.approx(1.42)
    late = find_cycle(rows(80, {30: 1.0, 45: 1.0, 60: 1.0, 75: 1.0}))
    assert late.steps == 15
    assert find_cycle(rows(80, {**every(21, 80), 33: 0.4})).steps == 21, "a hiccup between them changes nothing"


def test_two_pauses_are_enough_where_the_first_came_after_one_cycle() -> None:
    assert find_cycle(rows(50, every(21, 50))).steps == 21
    assert find_cycle(rows(50, {11: 1.0, 32: 1.0})) == Cycle()


@pytest.mark.parametrize(
    "pauses",
    [
        {},
        {40: 1.0},
        {20: 1.0, 27: 1.0, 55: 1.0, 60: 1.0},
        every(21, 80, 0.04),
        every(3, 80),
        every(21, 80, LONGEST_S),
        {20: 1.0, 27: 1.0, 34: 1.0},
    ],
    ids=["none", "once", "irregular", "short", "in every window", "too long", "it stopped"],
)
def test_what_is_no_cycle(pauses: dict[int, float]) -> None:
    assert find_cycle(rows(80, pauses)) == Cycle()


def test_the_steps_that_open_epochs_are_no_pauses() -> None:
    """They are accounted for by themselves."""
    steps = [replace(row, lo_n=int(row.i % 21 == 20 or row.i == 0)) for row in rows(80, every(21, 80))]
    assert find_cycle(steps) == Cycle()


def test_a_window_holds_whole_cycles() -> None:
    steps = rows(80, every(21, 80))
    turn = Turn("baseline", steps[5].t, steps[60].t, thawed=False)
    assert to_window(turn, steps, 0, 3, 99.0).steps == 55
    window = to_window(turn, steps, 0, 21, 99.0, cycle=21)
    assert window.steps == 42 and window.steady_s == pytest.approx(STEP_S + 1 / 21) and window.dropped is None
    assert to_window(Turn("baseline", steps[5].t, steps[20].t, False), steps, 0, 21, 99.0, cycle=21).dropped is not None


def test_a_trial_sees_what_a_pause_costs(make_arm: MakeArm) -> None:
    slow, fast = make_arm("slow", step_s=0.004, pause_every=12, pause_s=0.2), make_arm("fast", step_s=0.004)
    whole = replace(QUICK, window_steps=12, cycle_steps=12, seconds=4.0, min_pairs=4, stop_early=False)
    trial = compare(slow, fast, whole, lambda windows, periodic: ratio_interval(windows))
    assert trial.interval is not None, trial.reason
    true = (12 * 0.004 + 0.2) / (12 * 0.004)  # 5.2, a little less with what a step costs besides
    assert 0.7 * true < trial.interval.ratio < 1.2 * true
