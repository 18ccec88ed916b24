"""Each lever's edits are what its golden folder says, and both sources are Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotlap.lever.contract import Refusal
from hotlap.lever.registry import lever, levers
from hotlap.records.codec import encode, loads
from hotlap.records.findings import Findings
from hotlap.testing.lever_kit import machine_for

GOLDEN = Path(__file__).parents[1] / "golden" / "lever"


def test_every_lever_has_a_golden_folder() -> None:
    assert sorted(p.name for p in GOLDEN.iterdir()) == list(levers())


@pytest.mark.parametrize("folder", sorted(GOLDEN.iterdir()), ids=lambda p: p.name)
def test_edits(folder: Path) -> None:
    found = lever(folder.name)
    findings = loads(Findings, (folder / "findings.json").read_text())
    finding = found.evidence(findings)
    assert finding is not None
    settings = found.settings(finding, findings, machine_for(found))
    is_advice = getattr(found, "ADVICE", False)
    assert isinstance(settings, Refusal) is is_advice
    edits = found.edits(finding, {} if isinstance(settings, Refusal) else settings[0])
    assert encode(edits) == json.loads((folder / "edits.json").read_text())
    before, after = (folder / "before.py").read_text(), (folder / "after.py").read_text()
    compile(before, "before.py", "exec")
    compile(after, "after.py", "exec")
    assert before != after
    line = before.split("\n")[edits[0].line - 1].strip()
    assert line == finding.where[0].text
    for edit in edits:
        for keyword, value in edit.keywords.items():
            assert f"{keyword}={value!r}" in after
        if "{" not in edit.code:  # with a place to fill in: tests/patch shows what becomes of it
            assert edit.code in after
