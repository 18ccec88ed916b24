"""The end of a lap: its plan where the user asked for it, else in the run folder, and the report in any case."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hotlap.cli.commands import speedup as command
from hotlap.cli.main import main
from hotlap.lap.speedup import Outcome
from hotlap.records.codec import loads
from hotlap.records.plan import Plan
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.testing.lever_kit import findings_of

TEXT = "schema: hotlap.plan/1\nmoves: []\n"


def lap(*asked: Any) -> None:
    """In place of the lap: it kept a plan."""
    folder, outcome = asked[2], asked[4]
    assert isinstance(folder, RunFolder) and isinstance(outcome, Outcome)
    (folder.path / "plan.yaml").write_text(TEXT)
    outcome.plan, outcome.plan_text, outcome.findings = Plan([]), TEXT, findings_of()


@pytest.mark.parametrize(
    ("there", "note"),
    [("nothing", ""), ("somebody", "is no plan of Hotlap's: the plan is "), ("folder", "the plan is ")],
)
def test_the_plan_and_the_report_outlive_a_file_that_cannot_be_written(
    there: str, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = tmp_path / "fast.yaml"

    def meanwhile(*asked: Any) -> None:
        lap(*asked)
        if there == "folder":  # it came while the lap ran: what is looked at beforehand cannot see it
            wanted.mkdir()
        elif there == "somebody":
            wanted.write_text("mine")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "speedup", meanwhile)
    assert main(["speedup", "--", sys.executable, "-c", "pass"]) == 0
    folder = next((tmp_path / ".hotlap").glob("*-*"))
    run = loads(RunRecord, (folder / "run.json").read_text(), "run.json")
    if note:
        assert run.plan_path == str(folder / "plan.yaml") and note + run.plan_path in run.notes[0]
    else:
        assert run.plan_path == "fast.yaml" and wanted.read_text() == TEXT and run.notes == []
    assert there != "somebody" or wanted.read_text() == "mine"
    assert (folder / "report.html").is_file() and "report.html" in capsys.readouterr().err


def test_a_plan_that_was_edited_is_kept_where_a_new_one_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "speedup", lap)
    words = ["speedup", "--no-sandbox", "--", sys.executable, "-c", "pass"]
    for _ in range(2):
        assert main(words) == 0
        assert "was edited" not in capsys.readouterr().err, "it is as a run wrote it"
    edited = f"{TEXT}# without autocast\n"
    Path("fast.yaml").write_text(edited)
    assert main(words) == 0
    told = " ".join(capsys.readouterr().err.split())
    (kept,) = Path(".hotlap").glob("*/replaced.yaml")
    assert "was edited since it was written" in told and kept.read_text() == edited
    assert Path("fast.yaml").read_text() == TEXT
