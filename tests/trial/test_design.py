"""The pure half: windows, steadiness, periodic work, neighbours, source lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hotlap.records.rows import PHASES, Event, Frame, Header, Step
from hotlap.records.timeline import Timeline
from hotlap.records.trials import Interval, Window
from hotlap.trial import design, neighbours
from hotlap.trial.budget import Budget
from hotlap.trial.collect import annotate
from hotlap.trial.periodic import gather
from hotlap.trial.windows import Turn, openings, to_window

S = 1_000_000_000


def step(i: int, t_s: float, w_s: float, validation_s: float = 0.0, lo_s: float = 0.0) -> Step:
    phases: list[int | None] = [0] * len(PHASES)
    phases[PHASES.index("validation")] = int(validation_s * S)
    phases[PHASES.index("checkpoint")] = None
    return Step(i, 1, int(t_s * S), int(w_s * S), phases, 4, 1, lo=int(lo_s * S))


def even(n: int, w_s: float = 0.1) -> list[Step]:
    return [step(i, i * w_s, w_s) for i in range(n)]


def test_only_whole_steps_after_the_dropped_ones_count() -> None:
    turn = Turn("baseline", int(0.95 * S), int(2.05 * S), thawed=True)
    window = to_window(turn, even(40), drop=2, least=3, neighbour_cores=0.15)
    assert (window.steps, window.samples, window.dropped) == (8, 32, None)
    assert window.steady_s == pytest.approx(0.1)
    running_on = to_window(Turn("baseline", turn.begin, turn.end, thawed=False), even(40), 2, 3, 0.15)
    assert running_on.steps == 10
    assert "too few steps (8 of 9)" in str(to_window(turn, even(40), 2, 9, 0.15).dropped)


def test_periodic_work_and_epoch_starts_are_left_out_of_the_steady_time() -> None:
    rows = [step(0, 0, 0.1), step(1, 0.1, 0.6, validation_s=0.5), step(2, 0.7, 0.4, lo_s=0.3)]
    window = to_window(Turn("candidate", 0, 2 * S, thawed=False), rows, 0, 1, 0.15)
    assert window.steady_s == pytest.approx(0.1)


def epochs(n: int, length: int, opening_s: float = 0.3, loader_s: float = 0.1) -> list[Step]:
    """Steps of 0.1 s; each epoch's first one takes ``opening_s``, of which ``loader_s`` are the loader's start."""
    rows: list[Step] = []
    t = 0.0
    for i in range(n):
        first = i % length == 0
        rows.append(replace(step(i, t, opening_s if first else 0.1, lo_s=loader_s * first), lo_n=int(first)))
        t += opening_s if first else 0.1
    return rows


def test_a_window_is_the_same_with_and_without_the_step_that_opens_an_epoch() -> None:
    rows = epochs(40, 10)
    opening = {row.t for row in openings(rows)}
    assert [row.i for row in openings(rows)] == [0, 10, 20, 30]
    for first, last in ((2, 8), (8, 14)):
        turn = Turn("baseline", rows[first].t, rows[last].t, thawed=False)
        window = to_window(turn, rows, 0, 3, 99.0, opening=opening)
        assert window.steady_s == pytest.approx(0.1) and window.steps == last - first - (first == 8)
    assert openings(epochs(40, 3)) == [], "such steps are a part of every window"


def test_the_start_of_an_epoch_costs_what_its_first_step_takes_beyond_the_others() -> None:
    rows = {"baseline": epochs(40, 10), "candidate": epochs(40, 10, opening_s=0.15, loader_s=0.05)}
    ends = {arm: [row.t + int(row.lo) for row in found if row.lo_n] for arm, found in rows.items()}
    events = {
        arm: [Event("loader_start", t, rows[arm][10].lo, 10 * k) for k, t in enumerate(ends[arm])] for arm in rows
    }
    live = {"baseline": [(0, None)], "candidate": [(0, None)]}
    stats = gather(events, rows, live)
    assert stats.seconds["baseline"]["epoch_start"] == pytest.approx(0.2)
    assert stats.seconds["candidate"]["epoch_start"] == pytest.approx(0.05)
    frozen = rows["baseline"][20]
    live["baseline"] = [(0, frozen.t + frozen.lo + 1), (frozen.t + frozen.w - 1, None)]
    assert gather(events, rows, live).count["baseline"]["epoch_start"] == 2, "a freeze fell into the rest of a step"
    short = {arm: epochs(40, 2) for arm in rows}
    assert gather(events, short, live).seconds["baseline"]["epoch_start"] == pytest.approx(0.1), "the start alone"


@pytest.mark.parametrize(("others", "idle", "dropped"), [(0.1, 0.0, False), (0.5, 0.2, True), (0.5, 30.0, False)])
def test_neighbours_matter_where_no_core_is_spare(others: float, idle: float, dropped: bool) -> None:
    turn = Turn("baseline", 0, 2 * S, False, others, idle)
    assert (to_window(turn, even(20), 0, 3, 0.15).dropped is not None) == dropped


def test_neighbour_load_is_what_neither_arm_nor_hotlap_used() -> None:
    text = "cpu 9 9 9 9\ncpu0 100 0 0 100 0 0 0 0\ncpu1 50 0 0 150 0 0 0 10\ncpu2 9 9 9 9 9 9 9 9\n"
    assert neighbours.parse_stat(text, {0, 1}, 100) == (1.6, 2.5, 0.1)
    first = neighbours.CpuLook(0.0, 10.0, 5.0, 0.0, arm_s=1.0, own_s=1.0)
    last = neighbours.CpuLook(2.0, 13.0, 6.0, 0.0, arm_s=3.0, own_s=1.2)
    load = neighbours.between(first, last)
    assert load is not None and load.others == pytest.approx(0.4) and load.idle == pytest.approx(0.5)
    assert neighbours.between(None, last) is None


def test_warm_up_lasts_while_steps_get_faster() -> None:
    budget = Budget()
    falling = [step(i, i, 0.5 * 0.9**i + 0.1) for i in range(10)]
    assert not design.is_steady(falling, budget)
    assert design.is_steady(even(40), budget)
    assert not design.is_steady(even(40, 0.01), budget)  # too short a time, however many steps
    assert not design.is_steady(even(4, 5.0), budget)  # too few steps, however long
    noisy = [step(i, i, 0.1 + 0.03 * ((i * 7) % 5)) for i in range(40)]
    assert design.is_steady(noisy, budget)
    slower = [step(i, i, 0.1 + 0.01 * i) for i in range(40)]
    assert design.is_steady(slower, budget)  # drifting upwards is no warm-up


def test_turns_mirror_each_other() -> None:
    assert [design.order(i)[0] for i in range(8)] == list("bccbbccb")
    assert [design.order(i, True)[0] for i in range(8)] == list("cbbccbbc")


def test_a_turn_is_long_enough_for_long_steps() -> None:
    budget = Budget()
    assert design.turn_s(0.01, 2, budget) >= budget.window_s
    assert design.turn_s(5.0, 2, budget) >= (budget.window_steps + 2) * 5.0


def test_when_it_is_enough() -> None:
    budget = Budget(precision=0.02)
    clear, wide = Interval(1.5, 1.3, 1.7), Interval(1.0, 0.8, 1.2)
    assert not design.enough(clear, None, 4, budget)
    assert design.enough(clear, clear, 4, budget) and not design.enough(clear, clear, 3, budget)
    assert not design.enough(clear, wide, 4, budget) and not design.enough(wide, wide, 9, budget)
    assert design.enough(Interval(1.0, 0.99, 1.01), None, 4, budget)
    slower = Interval(0.8, 0.7, 0.9)
    assert design.enough(slower, slower, 4, budget) and not design.enough(slower, clear, 4, budget)
    assert not design.enough(None, clear, 9, budget)


def test_a_gain_that_looks_worth_having_gets_more_time_until_it_is_certain() -> None:
    budget = Budget()
    promising = Interval(1.5, 0.7, 3.4)
    assert design.worth_more_time(promising, budget)
    assert not design.worth_more_time(promising, replace(budget, stop_early=False)), "the time of a proof is its own"
    for settled in (Interval(1.5, 1.2, 1.9), Interval(1.01, 0.9, 1.1), Interval(0.9, 0.5, 1.6), None):
        assert not design.worth_more_time(settled, budget)


def test_the_quietest_windows_are_the_ones_that_count() -> None:
    loads = [("baseline", 0.9), ("candidate", 0.3), ("candidate", 0.5), ("baseline", 0.2), ("baseline", 0.4)]
    assert design.bearable_load(loads, 2) == 0.5 and design.bearable_load(loads, 1) == 0.3
    assert design.bearable_load(loads, 3) is None


def test_pairs_are_windows_of_the_arm_that_has_fewer() -> None:
    windows = [Window("baseline", 0, 9, 9, 1.0), Window("baseline", 0, 9, 9, 1.0), Window("candidate", 0, 9, 9, 1.0)]
    assert design.counted_pairs([*windows, Window("candidate", 0, 1, 1, 1.0, "too few steps")]) == 1
    assert design.words_on_counted(windows[:1]) == "no pair of windows counted"
    assert design.words_on_counted(windows).startswith("only ")


def test_periodic_work_shares_one_cadence() -> None:
    baseline = [Event("validation", i * S, S // 2, i) for i in (10, 20)]
    frozen = Event("validation", 25 * S, 10 * S, 25)
    checkpoint = [Event("checkpoint", 12 * S, S // 10, 12)]
    steps = {"baseline": even(40), "candidate": even(10)}
    live = {"baseline": [(0, 30 * S)], "candidate": [(0, None)]}
    events = {"baseline": [*baseline, frozen, *checkpoint], "candidate": [Event("checkpoint", S, S // 100, 5)]}
    stats = gather(events, steps, live)
    assert stats.per_step == {"validation": 3 / 40, "checkpoint": 1 / 40}
    assert stats.seconds["baseline"] == {"validation": 0.5, "checkpoint": 0.1}
    assert stats.seconds["candidate"] == {"validation": 0.5, "checkpoint": 0.01}
    assert len(stats.notes) == 1 and "candidate saw no validation" in stats.notes[0]
    assert stats.baseline_s == pytest.approx(3 / 40 * 0.5 + 1 / 40 * 0.1)
    assert stats.flat()["candidate"]["checkpoint_n"] == 1.0
    assert gather(events, steps, live, {"validation": 0.5}).candidate_s == pytest.approx(0.25)


def test_lines_and_their_loops_are_added(tmp_path: Path) -> None:
    body = [
        "total = 0",
        "for x in data:",
        "    total += x",
        "y = [f(z)",
        "     for z in q]",
        "def f(z):",
        "    return z",
    ]
    text = "\n".join(["for epoch in range(3):", *("    " + line for line in body)])
    (tmp_path / "train.py").write_text(text)
    header = Header("hotlap.timeline/1", "0", "train", 1, 0, 0, 1, [], str(tmp_path), "3", "2", "cpu", 0, 4e9)
    timeline = Timeline(header)
    file = str(tmp_path / "train.py")
    for number, line in enumerate((2, 4, 6, 8, 99)):
        timeline.add(Frame(number, file, line, "main", True))
    timeline.add(Frame(9, "/usr/lib/torch.py", 1, "g", False))
    timeline.add(Frame(10, str(tmp_path / "gone.py"), 1, "g", True))
    annotate(timeline)
    assert timeline.source == {
        f"{file}:2": "total = 0", f"{file}:4": "total += x", f"{file}:6": "for z in q]", f"{file}:8": "return z",
    }  # fmt: skip
    assert timeline.loops == {
        f"{file}:2": "for epoch in range(3):", f"{file}:4": "for x in data:", f"{file}:6": "for z in q",
    }  # fmt: skip
