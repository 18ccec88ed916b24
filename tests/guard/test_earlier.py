"""What earlier runs of the same command know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hotlap.diagnose.diagnose import diagnose
from hotlap.guard.earlier import look_back
from hotlap.records.findings import Roof
from hotlap.records.machine import Machine
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.testing.run_folders import made_run
from hotlap.testing.timelines import TimelineBuilder, cpu_machine

COMMAND = ["python", "train.py"]


def kept(root: Path, name: str, machine: Machine | None, roof: float | None) -> RunFolder:
    folder = made_run(root, name, RunRecord("diagnose", COMMAND, "2026-03-01 10:15:00", status="finished"))
    if machine is not None:
        folder.write("machine.json", machine)
    if roof is not None:
        found = diagnose(TimelineBuilder().steps(100, forward=0.1).build(), cpu_machine(), "train.py")
        folder.write("findings.json", replace(found, roof=Roof(roof, 0.1, 0.5, "resident batch")))
    return folder


def test_the_roof_of_another_machine_says_nothing_here(tmp_path: Path) -> None:
    own = kept(tmp_path, "20260301-101900-train", cpu_machine(2), None)
    kept(tmp_path, "20260301-101600-train", cpu_machine(2), 100.0)
    kept(tmp_path, "20260301-101700-train", cpu_machine(64), 9000.0)
    found = look_back(COMMAND, tmp_path, own).roof
    assert found is not None and found.samples_per_s == 100.0, "the newest that was measured on a machine like this one"
    kept(tmp_path, "20260301-101800-train", None, 120.0)
    found = look_back(COMMAND, tmp_path, own).roof
    assert found is not None and found.samples_per_s == 120.0, "of a machine that is not known it may be"
