"""What ends a proof over seeds before it has begun."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.lap import seed_notes
from hotlap.lap.seed_notes import end_notes, failed, past_notes, plan_notes, unmatched
from hotlap.records.errors import HotlapError
from hotlap.records.plan import Move, Plan
from hotlap.records.rows import Event, Mark
from hotlap.records.seed_proof import ArmRun, SeedRuns, Stop
from hotlap.trial.arm import Arm

ARMS = ("baseline", "candidate")


def ended(label: str, **more: object) -> ArmRun:
    whole = ArmRun("failed", "crashed with exit code 1: RuntimeError: boom", 1, 195, 9.0, 1.0)
    return replace(whole, **more)  # type: ignore[arg-type]


def test_a_script_that_crashes_in_both_arms_has_nothing_to_prove(tmp_path: Path) -> None:
    arms: Any = {label: SimpleNamespace(spec=SimpleNamespace(output=tmp_path / label)) for label in ARMS}
    with pytest.raises(HotlapError, match=r"failed after 195 steps \(crashed with exit code 1: RuntimeError: boom\)"):
        failed(arms, {label: ended(label) for label in ARMS}, first=True)
    own = {label: ended(label, reason="crashed with exit code 3", exit_code=3) for label in ARMS}
    failed(arms, own, first=True)  # sys.exit(3) in both


def test_an_arm_that_went_far_beyond_its_stop_is_told() -> None:
    near, far = (ended("", status="stopped", steps=40, past_steps=n) for n in (3, 40))
    assert past_notes(SeedRuns(1, [], "baseline", True, near, near)) == []
    (told,) = past_notes(SeedRuns(1, [], "baseline", True, near, far))
    assert "the script under the plan made 40 steps beyond the 40" in told


def test_a_lever_that_failed_on_one_rank_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended("", status="finished")
    said = [Mark("lever", "tf32", "applied", 1), Mark("lever", "tf32", "failed", 0, "on rank 1: OSError: full")]
    monkeypatch.setattr(seed_notes, "last_words", lambda arm: {"tf32": said})
    runs, candidate = SeedRuns(1, [], "baseline", True, run, run), cast("Arm", None)
    plan = Plan([Move("tf32", {}, "maths")])
    assert plan_notes(plan, candidate, runs) == ["tf32: failed (on rank 1: OSError: full)."]
    del said[1]
    assert plan_notes(plan, candidate, runs) == []


def test_a_door_that_did_not_open_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "1.error").write_text("no torch\n")
    arm: Any = SimpleNamespace(spec=SimpleNamespace(timeline_dir=tmp_path, output="out.txt"))
    run: Any = SimpleNamespace(status="finished", reason="the script ended", steps=0, exit_code=0)
    with pytest.raises(HotlapError, match=r"attach to the script: no torch\. The text above names what failed"):
        failed({"baseline": arm}, {"baseline": run}, first=True)
    run.status, run.reason, run.exit_code = "failed", "crashed with exit code 1: ValueError: no", 1
    with pytest.raises(HotlapError, match=r"made no optimiser step \(crashed with exit code 1: ValueError: no\)"):
        failed({"baseline": arm}, {"baseline": run}, first=True)


def test_a_pattern_that_takes_only_the_beginning_of_a_number_is_told_as_it_was_typed(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("EER: 4.2e-1\n")
    arms: Any = {label: SimpleNamespace(spec=SimpleNamespace(output=tmp_path / "out")) for label in ARMS}
    run = ended("", status="finished")
    runs = SeedRuns(1, [], "baseline", True, run, run)
    (told,) = unmatched(re.compile(r"EER:\s*([\d.]+)"), arms, runs)
    assert told.startswith(r"--metric 'EER:\s*([\d.]+)' takes only the beginning of 4.2e-1")
    (head, *_) = unmatched(re.compile(r"AUC:\s*([\d.]+)"), arms, runs)
    assert head.startswith(r"--metric 'AUC:\s*([\d.]+)' matched no number")


@pytest.mark.parametrize(
    ("stop", "loaders", "words"),
    [
        (Stop(epochs=3), 0, "--epochs 3 stopped no run: the script ended by itself after 195 steps, and no epochs"),
        (Stop(epochs=3), 2, "and 2 epochs of a DataLoader began"),
        (Stop(epochs=3), 3, None),
        (Stop(steps=500), 0, "--steps 500 stopped no run: the script ended by itself after 195 steps."),
        (Stop(steps=195), 0, None),
        (Stop(), 0, None),
    ],
)
def test_a_stop_that_stopped_nothing_is_told(stop: Stop, loaders: int, words: str | None) -> None:
    events = [Event("loader_start", n, 1, 50 * n, d={"loader": 1.0}) for n in range(loaders)]
    arms: Any = {label: SimpleNamespace(poll=lambda: SimpleNamespace(events=events)) for label in ARMS}
    run = ended("", status="finished", reason="script ended")
    told = end_notes(stop, arms, SeedRuns(1, [], "baseline", True, run, run))
    assert (words is None and told == []) or (words is not None and words in told[0])
    stopped = replace(run, status="stopped")
    assert end_notes(stop, arms, SeedRuns(1, [], "baseline", True, stopped, stopped)) == []


def test_an_exit_code_of_the_scripts_own_is_named() -> None:
    run = ended("", reason="crashed with exit code 7", exit_code=7)
    (told,) = end_notes(Stop(), {}, SeedRuns(1, [], "baseline", True, run, run))
    assert "exit code 7" in told
