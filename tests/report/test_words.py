"""Settings, and how a run ended, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotlap.records.trials import NO_TIME
from hotlap.report.html import render
from hotlap.report.view import Report
from hotlap.report.words import ended, setting_text, verdict
from hotlap.testing.lever_kit import findings_of


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"workers": 2, "persistent": True}, "workers 2, persistent"),
        ({"option": "--batch-size", "value": "32"}, "--batch-size 32"),
        ({"option": "train.batch=", "value": 32}, "train.batch=32"),
        ({"file": "c.yaml", "key": "a.b", "value": False}, "a.b false in c.yaml"),
        ({"option": "--batch-size", "value": "32", "more": 1}, "option --batch-size, value 32, more 1"),
    ],
)
def test_a_setting_reads_as_it_is_written(setting: dict[str, Any], text: str) -> None:
    assert setting_text(setting) == text


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("failed", "failed"),
        ("interrupted", "was interrupted"),
        ("running", "is still running, or was killed"),
    ],
)
def test_how_a_run_ended_reads_on_from_the_run(status: str, text: str) -> None:
    report = Report(status=status)
    assert ended(report) == text
    assert f"This run {text}." in render(report)


def test_what_a_trial_refuted_is_not_the_verdict() -> None:
    found = findings_of("decode", "host-work")
    first, second = found.findings
    refuted = [replace(f, confirmed=False, evidence={"without_interval": [0.9, 1.0, 1.1]}) for f in (first, second)]
    assert first.cause in verdict(Report(findings=found))
    assert second.cause in verdict(Report(findings=replace(found, findings=[refuted[0], second])))
    assert verdict(Report(findings=found, kind="speedup")).endswith("No lever fits what was found: nothing was tried.")
    late = Report(findings=found, kind="speedup", refused=[("compile-model", f"{NO_TIME}: others came first.")])
    assert verdict(late).endswith("No time was left to try a lever: a larger --budget does.")
    assert "nothing was tried" not in verdict(Report(findings=found, kind="diagnose"))
    assert "gained nothing certain" in verdict(Report(findings=replace(found, findings=refuted)))
    confirmed = replace(refuted[0], confirmed=True)
    assert first.cause in verdict(Report(findings=replace(found, findings=[confirmed, second])))
