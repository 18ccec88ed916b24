"""``hotlap runs``: a line for each run, whatever its command is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.cli.main import main
from hotlap.records.run import RunRecord
from hotlap.testing.run_folders import made_run


def test_brackets_of_a_command_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    command = ["python", "train.py", "[/data/a]", "[resnet,vit]", ":rocket:"]
    made_run(tmp_path, "20260301-101500-train", RunRecord("run", command, "2026-03-01 10:15:00", status="finished"))
    assert main(["runs", "--runs", str(tmp_path)]) == 0
    assert "train.py [/data/a] [resnet,vit] :rocket:" in capsys.readouterr().out
