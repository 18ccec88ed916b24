"""What is on when the roof is measured."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from hotlap.lap.roof import numeric_moves
from hotlap.lever.catalog import threads
from hotlap.records.plan import Move
from hotlap.testing.lever_kit import findings_of, machine_of

SESSION = cast(Any, SimpleNamespace(machine=machine_of(), options=SimpleNamespace(
    allow={"bits", "maths", "distribution"}, skip=set())))  # fmt: skip


def on(*causes: str) -> set[str]:
    return {move.lever for move in numeric_moves(SESSION, findings_of(*causes))}


def test_whatever_changes_how_the_step_computes_belongs_to_the_roof() -> None:
    assert on("precision", "memory-format", "decode") == {"autocast", "channels-last"}
    assert on("gc-collect") == {"gc-freeze"}
    assert on("thread-contention") == {"threads"}, "with sixteen threads on two cores a step is not at its roof"


def test_what_the_plan_keeps_is_on_and_nothing_else() -> None:
    kept = [Move("cache-decode", {}, "bits"), Move("autocast", {"dtype": "bf16"}, "maths")]
    findings = findings_of("precision", "memory-format", "decode")
    assert [m.lever for m in numeric_moves(SESSION, findings, kept)] == ["autocast"]


def test_more_threads_than_cores_are_surely_too_many() -> None:
    findings = findings_of("thread-contention")
    finding, model = findings.findings[0], findings.step_model
    few = {"torch_threads": 2, "passive": False}
    assert threads.gain(finding, findings, few).low_s == 0.0
    many = replace(findings, step_model=replace(model, torch_threads=16))
    assert threads.gain(finding, many, few).low_s > 0.7 * finding.seconds_per_step
