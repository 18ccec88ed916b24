"""Two arms run to their ends, abreast."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

import pytest
from trial_support import QUICK, MakeArm  # a helper beside the tests, which are no package

from hotlap.records.rows import Event, Step
from hotlap.records.seed_proof import Stop
from hotlap.trial import abreast
from hotlap.trial.abreast import Ends, run_abreast
from hotlap.trial.arm import Arm
from hotlap.trial.arm_run import arm_run, last_match, windows
from hotlap.trial.awake import awake_s
from hotlap.trial.progress import nowhere
from hotlap.trial.stopping import reached_at, stops_at
from hotlap.trial.tail import FileTail


def never(_: Mapping[str, Sequence[Step]]) -> bool:
    return False


def go(monkeypatch: pytest.MonkeyPatch, arms: Mapping[str, Arm], stop: Stop = Stop(), **more: bool) -> Ends:  # noqa: B008
    monkeypatch.setattr(abreast, "TURN_S", 0.3)
    return run_abreast(arms, stop, QUICK, nowhere, never, **more)


def pair(make_arm: MakeArm, **candidate: object) -> dict[str, Arm]:
    arms = {"baseline": make_arm("baseline", step_s=0.02, steps=60)}
    arms["candidate"] = make_arm("candidate", **{"step_s": 0.01, "steps": 60, **candidate})
    return arms


def test_both_come_to_their_ends_level_with_each_other(make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = pair(make_arm)
    begun = time.monotonic()
    ends = go(monkeypatch, arms)
    both_s = time.monotonic() - begun
    runs = {label: arm_run(arms[label], ends.ends[label], Stop(), re.compile("train.ng")) for label in arms}
    assert {run.status for run in runs.values()} == {"finished"} and {run.steps for run in runs.values()} == {60}
    assert runs["baseline"].loss == [1.0 / (i + 1) for i in range(60)]
    assert runs["baseline"].end_s == sorted(runs["baseline"].end_s)
    assert runs["baseline"].run_s >= 1.2 and runs["candidate"].run_s >= 0.6
    assert sum(run.run_s for run in runs.values()) <= both_s, "frozen time does not count"
    assert runs["candidate"].end_s[-1] <= runs["candidate"].run_s
    turns = [turn.arm for turn in ends.turns]
    assert turns[:4] == ["baseline", "candidate", "candidate", "baseline"] and len(turns) >= 6
    assert {w.arm for w in windows(arms, ends.turns, ends.cycle.steps)} == {"baseline", "candidate"}
    assert runs["baseline"].metric is None, "a match that is no number is none"


def test_turns_hold_the_pauses_that_come_round_whole(make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = {"baseline": make_arm("baseline", step_s=0.004, steps=300, pause_every=12, pause_s=0.2)}
    arms["candidate"] = make_arm("candidate", step_s=0.004, steps=300)
    ends = go(monkeypatch, arms)
    assert ends.cycle.steps == 12
    counted = [w for w in windows(arms, ends.turns, ends.cycle.steps) if w.steps >= 12]
    slow = [w.steady_s for w in counted if w.arm == "baseline"]
    assert len(slow) >= 3 and {w.steps % 12 for w in counted} == {0}
    assert max(slow) < 1.3 * min(slow), "each holds as many pauses as its share"
    assert 0.9 * (0.004 + 0.2 / 12) < sum(slow) / len(slow) < 1.5 * (0.004 + 0.2 / 12)


def test_a_crash_lets_the_other_go_on_only_to_see_whether_it_crashes_too(
    make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = pair(make_arm, steps=1000, at=20, how="raise ValueError('broken')")
    ends = go(monkeypatch, arms).ends
    assert ends["candidate"].status == "failed" and "ValueError: broken" in ends["candidate"].reason
    assert (ends["baseline"].status, ends["baseline"].reason) == ("stopped", "decided")
    run = arm_run(arms["candidate"], ends["candidate"], Stop(), None)
    assert (run.steps, run.exit_code) == (20, 1)


def test_runs_are_stopped_where_asked_and_cut_there(make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = pair(make_arm)
    stop = Stop(steps=15)
    ends = go(monkeypatch, arms, stop).ends
    runs = {label: arm_run(arms[label], ends[label], stop, None) for label in arms}
    assert {(run.status, run.steps) for run in runs.values()} == {("stopped", 15)}
    assert all(run.run_s == run.end_s[14] and len(run.loss) == 15 for run in runs.values())


def test_a_loss_that_was_reached_once_is_reached(make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = pair(make_arm, steps=1000)
    run = abreast._Abreast(arms, Stop(loss=0.1), abreast.Runner(QUICK, nowhere), never)
    tail = FileTail(arms["baseline"].spec.timeline_dir)
    low, high = [step(i, 0.05) for i in range(10)], [step(i, 9.0) for i in range(10, 30)]
    monkeypatch.setattr(arms["baseline"], "poll", lambda: tail)
    assert not run.over("baseline")
    tail.steps = low + high
    assert run.over("baseline") and run.over("baseline"), "it rose again before it was looked at"


def test_one_arm_after_the_other(make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = pair(make_arm)
    ends = go(monkeypatch, arms, one_at_a_time=True)
    turns = [turn.arm for turn in ends.turns]
    assert turns == sorted(turns) and {end.status for end in ends.ends.values()} == {"finished"}


def test_what_decides_the_matter_ends_it(make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abreast, "TURN_S", 0.2)
    arms = pair(make_arm, steps=1000)
    ends = run_abreast(arms, Stop(), QUICK, nowhere, lambda rows: len(rows["candidate"]) > 5).ends
    assert {end.reason for end in ends.values()} == {"decided"}


def step(i: int, loss: float | None = None, n: int = 1) -> Step:
    return Step(i, n, i * 10, 10, [], 4, 1, l=[] if loss is None else [loss])


def test_where_a_run_stops() -> None:
    rows = [step(i) for i in range(20)]
    epochs = [Event("loader_start", i * 10, 1, i) for i in (0, 8, 16)]
    assert stops_at(Stop(steps=12), rows, []) == 12 and stops_at(Stop(steps=21), rows, []) is None
    assert stops_at(Stop(epochs=2), rows, epochs) == 16 and stops_at(Stop(epochs=3), rows, epochs) is None
    assert stops_at(Stop(), rows, epochs) is None
    several = [Event("loader_start", i * 10, 1, i, d={"loader": n}) for i, n in ((0, 0), (0, 1), (5, 1), (10, 1))]
    assert stops_at(Stop(epochs=1), rows, several) is None, "a smaller loader that is cycled ends no epoch"
    several.append(Event("loader_start", 120, 1, 12, d={"loader": 0}))
    assert stops_at(Stop(epochs=1), rows, several) == 12
    anew = [Event("loader_start", i * 10, 1, i, d={"loader": i}) for i in (0, 8, 16)]
    assert stops_at(Stop(epochs=2), rows, anew) == 16
    falling = [step(i, 3.0 - 0.1 * i) for i in range(30)]
    assert reached_at(falling, 1.5) == 20, "the mean of ten steps, not a single one"
    assert stops_at(Stop(loss=1.5), falling, []) == 21 and reached_at(rows, 1.0) is None


def test_an_arms_own_clock() -> None:
    thaws = [(1_000, 2_000), (5_000, None)]
    assert awake_s(thaws, [1_500, 2_000, 3_000, 5_500]) == [500e-9, 1000e-9, 1000e-9, 1500e-9]
    assert awake_s([(1_000, 2_000)], [9_000]) == [1000e-9] and awake_s([], [5]) == [0.0]


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        (r"EER[:= ]+([\d.]+)", "EER: 7.1\nEER: 5.25.\n", 5.25),
        (r"acc (\S+)", "acc 91.5%", 91.5),
        (r"\d+$", "a 1\nb 22", 22.0),
        (r"EER (\S+)", "EER nan", None),
        (r"EER[:= ]+([\d.]+)", "EER: 3.1\nEER: nan\n", None),
        (r"EER[:= ]+([\d.]+)", "EER: nan\nEER: 3.1\nloss nan\n", 3.1),
        (r"EER (\S+)", "loss 3", None),
        (r"EER (\S+)", "EER 3.1\nEER soon", 3.1),
        (r"EER[:= ]+([\d.]+)", "EER: 3.1\nEER: 4.2e-1\n", None),
        (r"EER[:= ]+([-+\d.eE]+)", "EER: 4.2e-1\n", 0.42),
    ],
)
def test_the_last_match_that_is_a_number(pattern: str, text: str, value: float | None) -> None:
    assert last_match(re.compile(pattern, re.MULTILINE), text)[0] == value


@pytest.mark.parametrize(
    ("pattern", "text", "whole"),
    [
        (r"EER: ([\d.]+)", "EER: 4.2e-1", "4.2e-1"),
        (r"EER: (\d+)", "EER: 4.2\n", "4.2"),
        (r"EER: (\d)", "EER: 17 %", "17"),
        (r"EER: (\d+)", "EER: 4. Done", ""),
        (r"EER: (\d+)", "EER: 4.2\nEER: nan", ""),
    ],
)
def test_the_beginning_of_a_number_is_another_number(pattern: str, text: str, whole: str) -> None:
    value, cut = last_match(re.compile(pattern), text)
    assert cut == whole and (value is None or not cut)
