"""The JSON schema: complete, documented, finite, the same in every state."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.report import sample

from hotlap.report.data import to_json

DOC = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def example() -> dict[str, Any]:
    """A short report whose JSON stands in the documentation."""
    found = sample.findings(findings=sample.findings_list()[:1], over_time=[])
    return to_json(sample.speedup(findings=found, levers=sample.levers()[:3]))


def shape(value: Any, path: str = "") -> set[str]:
    """Every key's path; lists by their elements."""
    if isinstance(value, dict):
        return {p for key, inner in value.items() for p in {f"{path}.{key}", *shape(inner, f"{path}.{key}")}}
    if isinstance(value, list):
        return {p for inner in value for p in shape(inner, f"{path}[]")}
    return set()


@pytest.mark.parametrize("state", sample.STATES)
def test_every_state_serialises_with_the_same_top_level_keys(state: str) -> None:
    report = sample.STATES[state]()
    out = to_json(report)
    json.dumps(out, allow_nan=False)
    reference = to_json(sample.speedup() if report.is_speedup else sample.diagnose())
    assert list(out) == list(reference)
    assert out["schema"] == ("hotlap.speedup/1" if report.is_speedup else "hotlap.diagnose/1")


def test_the_documented_example_is_what_the_function_writes() -> None:
    block = re.search(r"```json\n(.*?)```", DOC.read_text(encoding="utf-8"), re.S)
    assert block is not None
    assert json.loads(block[1]) == example()


def test_every_key_is_documented() -> None:
    text = DOC.read_text(encoding="utf-8").split("## Example")[0]
    opened = (
        ".machine.",
        ".script.loader.where",
        ".plan.",
        ".phases.",
        ".findings[].evidence.",
        ".script.model.",
        ".script.optimizers[]",
        ".levers[].setting.",
    )
    for path in shape(example()):
        if not any(part in path for part in opened):
            assert f"`{path.rsplit('.', 1)[1]}`" in text or f"`{path[1:]}`" in text or f" {path[1:]}" in text, path


def test_contract_of_the_scored_keys() -> None:
    out = to_json(sample.speedup())
    assert out["speedup"] == {"ratio": 6.93, "low": 6.71, "high": 7.18, "level": 0.95, "launches": 1}
    assert out["levers"][0]["measured"]["ratio"] == 3.04 and out["levers"][0]["kept"] is True
    assert out["levers"][4]["measured"] is None
    assert out["findings"][0]["where"][0] == {
        "file": "train.py",
        "line": 48,
        "function": "SpeechSet.__getitem__",
        "text": "wave, rate = soundfile.read(self.files[index])",
        "share": 0.81,
    }
    assert out["plan"]["moves"][0]["lever"] == "cache-decode"
    assert "raw" not in out["quality"] and out["quality"]["verdict"] == "proved"
    assert out["throughput"]["samples_per_s"] == 212.3 and out["roof"]["share"] == 0.1115


def test_numbers_that_are_none_become_null() -> None:
    out = to_json(sample.absurd())
    assert out["throughput"]["step_s"] is None and out["speedup"]["ratio"] is None
    assert out["throughput"]["samples_per_s"] == 0.0
