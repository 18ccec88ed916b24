"""The judge of bench/drift.py: what counts as found, and what as a false alarm."""

from __future__ import annotations

import drift
import pytest

from hotlap.records.causes import AROUND, CAUSES
from hotlap.records.findings import Where
from hotlap.records.guard import Alarm, GuardRecord


def record(cause: str, found_step: int, found_s: float = 20.0, at_step: int = 100) -> GuardRecord:
    alarm = Alarm(at_step, found_step, 10.0, found_s, 0.1, 0.2, "gc", False, cause, [Where("a/t.py", 5, "f")], "Look.")
    return GuardRecord(1000, 0, 100.0, [alarm])


@pytest.mark.parametrize(
    ("given", "found", "right", "false"),
    [
        (record("gc", 300), True, True, 0),
        (record("augment", 300), True, False, 0),
        (record("gc", 50), False, False, 1),
        (record("gc", 900, found_s=80.0), False, True, 0),
        (record("gc", 390, found_s=80.0), True, True, 0),
        (GuardRecord(1000, 0, 100.0), False, False, 0),
        (None, False, False, 0),
    ],
)
def test_judgement(given: GuardRecord | None, found: bool, right: bool, false: int) -> None:
    result = drift.judge("collections", given, 100)
    assert (result.found, result.right, result.false_alarms) == (found, right, false)
    assert drift.line(result)


def test_a_steady_run_wants_silence() -> None:
    assert drift.judge("steady", GuardRecord(10, 0, 1.0), None).found
    assert drift.judge("steady", record("gc", 300), None).false_alarms == 1
    assert "left alone" in drift.line(drift.judge("steady", None, None))


def test_expected_causes_exist() -> None:
    assert {c for causes in drift.KINDS.values() for c in causes} <= set(CAUSES) | set(AROUND)
