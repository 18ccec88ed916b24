"""What a lap ends with: its report, also where ``--json`` cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.cli.show import publish
from hotlap.records.errors import HotlapError
from hotlap.records.run_folder import RunFolder
from hotlap.report.view import Report
from hotlap.testing.lever_kit import findings_of


def test_the_report_is_there_before_json_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    report = Report(findings=findings_of(), kind="diagnose")
    with pytest.raises(HotlapError, match="Cannot write"):
        publish(report, RunFolder(tmp_path), tmp_path / "file" / "x.json", stderr=False)
    assert "report.html" in capsys.readouterr().out and (tmp_path / "report.html").is_file()
