"""Two arms against each other: what is measured, and how every way to fail ends."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from trial_support import QUICK, MakeArm, mean_ratio

from hotlap.records.trials import TOO_FEW, Interval, Window
from hotlap.trial import compare as compare_module
from hotlap.trial import neighbours
from hotlap.trial.compare import compare
from hotlap.trial.progress import Progress, nowhere
from hotlap.trial.runner import ArmEnded, Runner


def test_a_faster_candidate_is_measured_and_both_arms_are_left_frozen(make_arm: MakeArm) -> None:
    baseline = make_arm("baseline", step_s=0.02, validate_every=10)
    candidate = make_arm("faster", step_s=0.005, validate_every=10)
    seen: list[Progress] = []
    trial = compare(baseline, candidate, QUICK, mean_ratio, seen.append)
    assert trial.status == "measured" and trial.interval is not None
    assert trial.interval.ratio > 1.3
    arms = [w.arm for w in trial.windows]
    assert arms[:4] == ["baseline", "candidate", "candidate", "baseline"]
    assert baseline.frozen and candidate.frozen and baseline.alive and candidate.alive
    assert trial.losses["baseline"][:3] == [1.0, 0.5, 1 / 3]
    assert len(trial.losses["baseline"]) == len(trial.losses["candidate"])
    assert trial.periodic["baseline"]["validation_n"] >= 1
    assert 0.025 < trial.periodic["candidate"]["validation_s"] < 0.5
    assert set(trial.startup_s) == {"baseline", "candidate"}
    assert {p.phase for p in seen} >= {"warm-up", "measure"} and {p.arm for p in seen} == {"baseline", "faster"}


def test_the_candidate_may_be_the_first(make_arm: MakeArm) -> None:
    baseline, candidate = make_arm("baseline", step_s=0.02), make_arm("faster", step_s=0.005)
    seen: list[Progress] = []
    budget = dataclasses.replace(QUICK, candidate_first=True)
    trial = compare(baseline, candidate, budget, mean_ratio, seen.append)
    assert [w.arm for w in trial.windows][:4] == ["candidate", "baseline", "baseline", "candidate"]
    assert seen[0].arm == "faster" and trial.interval is not None and trial.interval.ratio > 1.3


def test_arms_that_do_not_fit_into_memory_together_run_one_at_a_time(make_arm: MakeArm) -> None:
    baseline, candidate = make_arm("baseline", step_s=0.02), make_arm("faster", step_s=0.005)
    beside: list[bool] = []

    def look(progress: Progress) -> None:
        beside.append(baseline.alive and candidate.alive)

    budget = dataclasses.replace(QUICK, one_at_a_time=True)
    trial = compare(baseline, candidate, budget, mean_ratio, look)
    assert trial.status == "measured" and trial.interval is not None and trial.interval.ratio > 1.3
    assert beside and not any(beside)
    assert [w.arm for w in trial.windows][:4] == ["baseline", "candidate", "candidate", "baseline"]
    assert set(trial.startup_s) == {"baseline", "candidate"} and len(baseline.thaws) >= 2
    assert all(w.dropped is None for w in trial.windows[:4])


def test_a_script_that_ends_among_neighbours_is_measured_by_what_there_is(
    make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "between", lambda *_: SimpleNamespace(others=1.0, idle=0.0))
    baseline, candidate = make_arm("baseline", step_s=0.02, steps=120), make_arm("same", step_s=0.02, steps=120)
    budget = dataclasses.replace(QUICK, neighbour_cores=0.1, seconds=60.0, stop_early=False)
    trial = compare(baseline, candidate, budget, mean_ratio)
    assert trial.status == "measured" and any("script ended after 120 steps" in note for note in trial.notes)
    assert any("others took up to 1.0 cores" in note for note in trial.notes)


def test_windows_that_neighbours_spoiled_are_the_reason_where_they_are(
    make_arm: MakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that the script was too short, which more launches would not mend."""
    arm = make_arm("faster", step_s=0.01)
    found = compare_module._Comparison(
        make_arm("baseline", step_s=0.01), arm, QUICK, mean_ratio, Runner(QUICK, nowhere), None
    )
    ended = ArmEnded(arm, "script ended after 1600 steps", finished=True)
    dropped = ["neighbour load (0.50 cores)", "too few steps (2 of 6)", None]
    for why, words in ((dropped, f"; 1 of 3 windows were dropped: neighbour load, so no pair {TOO_FEW}"),
                       (dropped[1:], "; a comparison needs at least")):  # fmt: skip
        windows = [Window("baseline", n, 9, 9, 0.1, reason) for n, reason in enumerate(why)]
        monkeypatch.setattr(found, "windows", lambda windows=windows: windows)
        assert found.why(ended).startswith(f"script ended after 1600 steps{words}")
    assert TOO_FEW not in found.why(ended)


def test_a_step_that_compiles_takes_nothing_from_the_warm_up(make_arm: MakeArm) -> None:
    baseline, candidate = (
        make_arm("baseline", step_s=0.01),
        make_arm("compiled", step_s=0.01, at=1, how="time.sleep(2)"),
    )
    budget = dataclasses.replace(QUICK, candidate_warmup_steps=100, warmup_s=1.9)
    trial = compare(baseline, candidate, budget, mean_ratio)
    assert trial.status == "measured" and not any("still falling" in note for note in trial.notes)


@pytest.mark.parametrize(("second_step_s", "status"), [(60.0, "measured"), (0.0, "failed")])
def test_a_compiler_is_waited_for_as_long_as_it_is_told(make_arm: MakeArm, second_step_s: float, status: str) -> None:
    compiles = "any(time.process_time() > 7 for _ in iter(int, 1))"
    baseline, candidate = make_arm("baseline"), make_arm("compiled", at=1, how=compiles)
    budget = dataclasses.replace(QUICK, first_step_s=3.0, second_step_s=second_step_s)
    told: set[str] = set()
    trial = compare(baseline, candidate, budget, mean_ratio, lambda progress: told.add(progress.note))
    assert trial.status == status, trial
    assert any("in its second step, compiling" in note for note in told) is (status == "measured")


def test_no_window_holds_time_that_an_arm_was_frozen(make_arm: MakeArm) -> None:
    baseline, candidate = make_arm("baseline", step_s=0.01), make_arm("same", step_s=0.01)
    trial = compare(baseline, candidate, QUICK, mean_ratio)
    for arm in (baseline, candidate):
        steps = [row for run in arm.trainers() for row in run.steps]
        stretched = [row for row in steps if row.w > 0.2e9]
        assert stretched  # steps that a freeze fell into exist ...
        counted = [w for w in trial.windows if w.dropped is None]
        assert counted and all(w.steady_s < 0.1 for w in counted)  # ... and none of them counts


@pytest.mark.parametrize(
    ("options", "status", "reason"),
    [
        ({"at": 8, "how": "raise ValueError('bad')"}, "failed", "crashed with exit code 1: ValueError: bad"),
        ({"at": 8, "how": "raise MemoryError('tensor')"}, "failed", "out of memory: MemoryError: tensor"),
        ({"at": 0, "how": "input()"}, "failed", "asked for input"),
        ({"at": 8, "how": "time.sleep(100)"}, "failed", "hang: no step for"),
        ({"at": 1, "how": "time.sleep(100)"}, "failed", "hang: no step for"),
        ({"at": 1, "how": "while True: pass"}, "failed", "while it computes: a compilation"),
        ({"at": 8, "how": "import signal; os.kill(os.getpid(), signal.SIGSEGV)"}, "failed", "SIGSEGV"),
        ({"at": 8, "how": "os.kill(os.getpid(), 9)"}, "failed", "SIGKILL"),
        ({"at": 8, "how": "sys.exit(3)"}, "failed", "exit code 3"),
        ({"steps": 6}, "failed", "script ended after 6 steps; a comparison needs at least"),
        ({"mark": "no-effect"}, "no-effect", "because"),
        ({"mark": "refused"}, "refused", "because"),
        ({"mark": "failed"}, "failed", "because"),
    ],
)
def test_a_candidate_that_cannot_be_measured_says_why(
    make_arm: MakeArm, options: dict[str, Any], status: str, reason: str
) -> None:
    baseline, candidate = make_arm("baseline"), make_arm("candidate", **options)
    trial = compare(baseline, candidate, dataclasses.replace(QUICK, first_step_s=5.0), mean_ratio)
    assert trial.status == status and reason in trial.reason, trial
    assert baseline.alive and baseline.frozen


@pytest.mark.parametrize("state", ["no-effect", "refused", "failed"])
def test_the_caches_of_a_lever_that_gave_up_are_not_warmed(make_arm: MakeArm, state: str) -> None:
    baseline, candidate = make_arm("baseline"), make_arm("candidate", mark=state)
    budget = dataclasses.replace(QUICK, candidate_warmup_steps=400)
    trial = compare(baseline, candidate, budget, mean_ratio)
    assert trial.status == state and candidate.steps_done() < 100


def test_a_lever_that_was_applied_counts_its_changes(make_arm: MakeArm) -> None:
    trial = compare(make_arm("baseline"), make_arm("candidate", mark="applied"), QUICK, mean_ratio)
    assert trial.status == "measured" and trial.changes == 1


def test_the_baselines_own_end_is_named_as_such(make_arm: MakeArm) -> None:
    trial = compare(make_arm("baseline", at=3, how="raise ValueError('bad')"), make_arm("candidate"), QUICK, mean_ratio)
    assert trial.status == "failed" and trial.reason.startswith("the baseline: crashed")


@pytest.mark.flaky(reruns=2)  # six seconds of a machine that others may have taken
def test_a_short_script_is_started_again(make_arm: MakeArm) -> None:
    budget = dataclasses.replace(QUICK, restarts=5, seconds=6.0)
    baseline, candidate = make_arm("baseline", steps=60), make_arm("candidate", steps=60, step_s=0.01)
    trial = compare(baseline, candidate, budget, mean_ratio)
    assert trial.status == "measured", trial
    assert any("started again" in note for note in trial.notes)
    assert len(trial.losses["baseline"]) <= 60


@pytest.mark.flaky(reruns=2)  # the interval is asked for after some seconds of a machine that others may have taken
@pytest.mark.parametrize("where", ["interval", "progress"])
def test_ctrl_c_leaves_no_process(make_arm: MakeArm, where: str) -> None:
    baseline, candidate = make_arm("baseline"), make_arm("candidate")
    pids: set[int] = set()

    def stop_there(progress: Progress) -> None:
        for arm in (baseline, candidate):
            if arm._process is not None:
                pids.update([arm._process.pid, *(p.pid for p in psutil.Process(arm._process.pid).children(True))])
        if where == "progress" and progress.phase == "measure":
            raise KeyboardInterrupt

    def interval(*_: object) -> Interval | None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(baseline, candidate, QUICK, interval, stop_there)
    assert len(pids) >= 4
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_comparison_is_decided_early_when_the_interval_is_narrow(make_arm: MakeArm) -> None:
    budget = dataclasses.replace(QUICK, seconds=60.0, precision=0.05)
    trial = compare(make_arm("baseline"), make_arm("candidate", step_s=0.005), budget, mean_ratio)
    assert trial.status == "measured" and trial.wall_s < 30
