"""The judge of bench/drift.py: what counts as found, and what as a false alarm."""

from __future__ import annotations

import sys

import drift
import pytest

from hotlap.records.causes import AROUND, CAUSES
from hotlap.records.findings import Where
from hotlap.records.guard import Alarm, GuardRecord


def record(cause: str, found_step: int, found_s: float = 20.0, at_step: int = 100) -> GuardRecord:
    alarm = Alarm(at_step, found_step, 10.0, found_s, 0.1, 0.2, "gc", False, cause, [Where("a/t.py", 5, "f")], "Look.")
    return GuardRecord(1000, 0, 100.0, [alarm])


def both(first: str, second: str) -> GuardRecord:
    """Two warnings after the change."""
    return GuardRecord(1000, 0, 100.0, [*record(first, 300).alarms, *record(second, 600).alarms])


@pytest.mark.parametrize(
    ("given", "found", "right", "false"),
    [
        (record("gc", 300), True, True, 0),
        (record("augment", 300), True, False, 0),
        (record("gc", 50), False, False, 1),
        (record("gc", 900, found_s=80.0), False, True, 0),
        (record("gc", 390, found_s=80.0), True, True, 0),
        (GuardRecord(1000, 0, 100.0), False, False, 0),
        (both("gc", "augment"), True, True, 1),
        (both("gc", "gc"), True, True, 0),
    ],
)
def test_judgement(given: GuardRecord, found: bool, right: bool, false: int) -> None:
    result = drift.judge("collections", given, 100)
    assert (result.found, result.right, result.false_alarms) == (found, right, false)
    assert drift.line(result)


def test_a_steady_run_wants_silence() -> None:
    assert drift.judge("steady", GuardRecord(10, 0, 1.0), None).found
    assert drift.judge("steady", record("gc", 300), None).false_alarms == 1
    assert "left alone" in drift.line(drift.judge("steady", GuardRecord(10, 0, 1.0), None))


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        ("collections", GuardRecord(10, 0, 1.0), "the fault never began"),
        ("steady", None, "it wrote no guard.json"),
        ("steady", GuardRecord(10, 0, 1.0, notes=["The guard gave up: full"]), "The guard gave up: full"),
    ],
)
def test_what_was_not_tried_is_no_result(kind: str, given: GuardRecord | None, why: str) -> None:
    with pytest.raises(SystemExit, match=f"{kind}: .*{why}"):
        drift.judge(kind, given, None)


@pytest.mark.parametrize(("cause", "found_step", "code"), [("gc", 300, 0), ("augment", 300, 1), ("gc", 50, 1)])
def test_the_exit_code_says_whether_it_falls_short(
    cause: str, found_step: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "run", lambda *_: (record(cause, found_step), 100))
    monkeypatch.setattr(sys, "argv", ["drift.py", "--kinds", "collections"])
    assert drift.main() == code


def test_expected_causes_exist() -> None:
    assert {c for causes in drift.KINDS.values() for c in causes} <= set(CAUSES) | set(AROUND)
