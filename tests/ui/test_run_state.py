"""How a run stands, and what its neighbours may say about it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hotlap.records.guard import Alarm, GuardRecord
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.testing.run_folders import made_findings, made_run, made_timeline
from hotlap.testing.timelines import cpu_machine
from hotlap.ui.line import Lines
from hotlap.ui.run_state import States

ALARM = Alarm(5, 9, 1.0, 1.0, 0.1, 0.2, "forward", False, "decode", [], "Look.")


def run(root: Path, name: str, findings: bool = False) -> RunFolder:
    record = RunRecord("run", ["python", "train.py"], "2026-03-01 10:15:00", status="running")
    return made_run(root, name, record, made_findings() if findings else None)


@pytest.mark.parametrize("how", ["as it is", "a linked folder", "a linked document", "a pipe"])
def test_a_neighbour_is_asked_only_where_it_is_a_run_like_any_other(tmp_path: Path, how: str) -> None:
    runs = tmp_path / "runs"
    folder = run(runs, "20260302-000000-train")
    made_timeline(folder, 90)
    linked = how == "a linked folder"
    neighbour = run(tmp_path if linked else runs, "20260301-000000-train", findings=True)
    if linked:
        (runs / neighbour.path.name).symlink_to(neighbour.path)
    if how == "a linked document":
        (neighbour.path / "findings.json").rename(tmp_path / "findings.json")
        (neighbour.path / "findings.json").symlink_to(tmp_path / "findings.json")
    if how == "a pipe":
        os.mkfifo(neighbour.path / "proof.json")
    share = States(Lines()).read(folder).status.roof_share
    assert (share is not None) is (how == "as it is")


def test_a_roof_is_looked_up_again_once_the_machine_is_known(tmp_path: Path) -> None:
    folder = run(tmp_path, "20260302-000000-train")
    (folder.path / "machine.json").unlink()
    made_timeline(folder, 90)
    run(tmp_path, "20260301-000000-train", findings=True).write("machine.json", replace(cpu_machine(), cpu="another"))
    states = States(Lines())
    assert states.read(folder).status.roof_share is not None, "of a machine that is not known it may be"
    folder.write("machine.json", cpu_machine())
    assert states.read(folder).status.roof_share is None


@pytest.mark.parametrize("current", [None, ALARM])
def test_the_drift_that_is_shown_is_the_one_that_goes_on(tmp_path: Path, current: Alarm | None) -> None:
    folder = run(tmp_path, "20260302-000000-train")
    made_timeline(folder, 90)
    folder.write("guard.json", GuardRecord(90, 0, 9.0, [ALARM, replace(ALARM, over_step=80)], current=current))
    status = States(Lines()).read(folder).status
    assert status.drift == current and status.drifts == 2
