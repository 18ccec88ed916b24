"""``hotlap runs``: a line for each run, whatever its command is called."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hotlap.cli.main import main
from hotlap.records.guard import GuardRecord
from hotlap.records.proof import Proof, Quality
from hotlap.records.run import RunRecord
from hotlap.records.trials import Interval
from hotlap.testing.run_folders import made_run


def test_brackets_of_a_command_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    command = ["python", "train.py", "[/data/a]", "[resnet,vit]", ":rocket:"]
    made_run(tmp_path, "20260301-101500-train", RunRecord("run", command, "2026-03-01 10:15:00", status="finished"))
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    assert "train.py [/data/a] [resnet,vit] :rocket:" in capsys.readouterr().out


def test_how_a_run_ended_and_what_is_not_proved_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On 80 columns too, where a run's name, which other commands take, stays in one piece."""
    monkeypatch.setenv("COLUMNS", "80")
    command = ["python", "train.py", "--a-rather-long-option", "value"]
    killed = RunRecord("run", command, "2026-03-01 10:15:00", status="finished", exit_code=137)
    folder = made_run(tmp_path, "20260301-101500-train-of-mine", killed)
    folder.write("guard.json", GuardRecord(500, 4000, 10.0))
    tried = RunRecord("speedup", command, "2026-03-01 10:20:00", status="finished", exit_code=0)
    folder = made_run(tmp_path, "20260301-102000-train-of-mine", tried)
    quality = Quality("proved", "bits", "Losses are equal bit for bit.")
    folder.write("proof.json", Proof(Interval(1.1, 0.9, 1.3), quality, claimed=False))
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    first, second = (told[told.index(f"{name}-train-of-mine") :] for name in ("20260301-101500", "20260301-102000"))
    words = " ".join(first[: first.index("20260301-102000")].split())
    assert "137" in words and "400" in words and "exit" in words
    assert "proved" in second and "not" in second and "1.10x" in second


@pytest.mark.parametrize("command", [["runs"], ["watch"], ["report"], ["ui", "--no-browser"]])
def test_a_runs_folder_that_is_not_there_is_told_the_same_by_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "--runs", str(tmp_path / "gone")]) == 2
    assert f"There is no folder {tmp_path / 'gone'}." in " ".join(capsys.readouterr().err.split())


def test_a_run_that_was_killed_is_told_as_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = made_run(
        tmp_path, "20260301-101500-train", RunRecord("prove", ["python", "train.py"], "2026-03-01 10:15:00")
    )
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    assert "running" in (now := capsys.readouterr().out) and "silent" not in now
    for path in [*folder.path.rglob("*"), folder.path]:
        os.utime(path, (time.time() - 7200,) * 2)
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    assert "running, silent for 2 h" in capsys.readouterr().out


def test_a_lap_that_kept_nothing_has_no_speedup_and_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lap = RunRecord("speedup", ["python", "train.py"], "2026-03-01 10:15:00", status="finished", exit_code=0)
    folder = made_run(tmp_path, "20260301-101500-train", lap)
    quality = Quality("proved", "bits", "No lever was kept: the training is as it was.")
    folder.write("proof.json", Proof(Interval(1.0, 1.0, 1.0, 1.0), quality, claimed=False))
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "finished" in told and "1.00x" not in told and "not proved" not in told
    folder.write("proof.json", Proof(None, quality, claimed=False))
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    assert "finished, not proved" in capsys.readouterr().out, "there was a plan, and its speed was not measured"


def test_a_guarded_run_tells_its_throughput_when_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run = RunRecord("run", ["python", "train.py"], "2026-03-01 10:15:00")
    folder = made_run(tmp_path, "20260301-101500-train", run)
    folder.write("guard.json", GuardRecord(500, 4000, 10.0))
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    assert "400" not in capsys.readouterr().out, "what an alarm left is from before it"
