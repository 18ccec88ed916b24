"""``hotlap watch``: how a run goes, from its files alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hotlap.cli.main import main
from hotlap.records.guard import Alarm, GuardRecord
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.testing.run_folders import made_run, made_timeline

ALARM = Alarm(5, 9, 1.0, 1.0, 0.1, 0.2, "forward", False, "decode", [], "Look.")


@pytest.mark.parametrize("current", [None, ALARM])
def test_the_drift_that_is_shown_is_the_one_that_goes_on(
    current: Alarm | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made_run(
        tmp_path, "20260301-101500-train", RunRecord("run", ["python", "train.py"], "2026-03-01 10:15:00")
    )
    made_timeline(folder, 90)
    alarms = [ALARM, replace(ALARM, phase="validation"), replace(ALARM, over_step=80)]  # told, and superseded
    folder.write("guard.json", GuardRecord(90, 0, 9.0, alarms, current=current))
    assert main(["watch", "--once", "--runs", str(tmp_path)]) == 0
    assert ("slower: decode" in capsys.readouterr().out) is (current is not None)


def test_the_newest_run_that_can_be_watched_is_shown_with_its_time_left_or_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A proof that began later has nothing to watch."""
    going = RunRecord("run", ["python", "train.py"], "2026-03-01 10:15:00", total_steps=9000)
    made_timeline(made_run(tmp_path, "20260301-101500-train", going), 90)
    made_run(tmp_path, "20260301-102000-prove", RunRecord("prove", ["python", "train.py"], "2026-03-01 10:20:00"))
    assert main(["watch", "--once", "--runs", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "step 90" in told and "left" in told and "exit code" not in told
    RunFolder(tmp_path / "20260301-101500-train").write(
        "run.json", replace(going, status="finished", exit_code=3, total_steps=None)
    )
    assert main(["watch", "--once", "--runs", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "finished, exit code 3" in told and "left" not in told
