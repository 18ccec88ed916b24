"""What is on when the roof is measured."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lap_support import Session

from hotlap.lap import roof as module
from hotlap.lap.roof import NO_ROOF, STILL_LOADS, measure_roof, numeric_moves
from hotlap.lever.catalog import threads
from hotlap.records.findings import Findings, Roof
from hotlap.records.plan import Move
from hotlap.records.rows import Mark
from hotlap.records.trials import Interval, Trial
from hotlap.testing.lever_kit import findings_of, machine_of

RESIDENT = Mark("ablation", "data", "applied", 1)
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


def roof_of(
    findings: Findings, interval: Interval, monkeypatch: pytest.MonkeyPatch, marks: tuple[Mark, ...] = (RESIDENT,)
) -> tuple[Roof | None, Trial]:
    """The roof of a script without numeric levers, whose trial measures ``interval``."""
    monkeypatch.setattr(module, "measure", lambda *_: Trial("roof", {}, "measured", interval=interval))
    session: Any = Session()
    session.timeline = lambda arm: SimpleNamespace(mark=list(marks))
    return measure_roof(session, cast(Any, "script"), findings)


def test_a_roof_is_never_below_the_scripts_own_throughput(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = findings_of("decode")
    now = findings.throughput
    roof, _ = roof_of(findings, Interval(0.9, 0.7, 1.1), monkeypatch)
    assert roof is not None and (roof.samples_per_s, roof.step_s, roof.share) == (now.samples_per_s, now.step_s, 1.0)
    higher, _ = roof_of(findings, Interval(2.0, 1.9, 2.1), monkeypatch)
    assert higher is not None and (higher.step_s, higher.share) == (now.step_s / 2, 0.5)


def test_a_trial_that_is_surely_slower_than_the_script_is_no_roof(monkeypatch: pytest.MonkeyPatch) -> None:
    roof, trial = roof_of(findings_of("decode"), Interval(0.9, 0.85, 0.95), monkeypatch)
    assert roof is None and trial.reason == NO_ROOF


def test_windows_that_say_anything_are_no_roof(monkeypatch: pytest.MonkeyPatch) -> None:
    roof, trial = roof_of(findings_of("decode"), Interval(1.04, 0.4, 2.69), monkeypatch)
    assert roof is None and trial.reason.endswith("and say 0.40x to 2.69x of the script's speed")
    assert roof_of(findings_of("decode"), Interval(1.04, 0.6, 1.9), monkeypatch)[0] is not None


@pytest.mark.parametrize(("wall_s", "trials"), [(30.0, ["roof", "roof-plain"]), (80.0, ["roof"])])
def test_it_is_measured_again_without_numeric_levers_where_there_is_time(
    monkeypatch: pytest.MonkeyPatch, wall_s: float, trials: list[str]
) -> None:
    seen: list[str] = []

    def measure(session: Session, incumbent: Any, arm: str, question: Any) -> Trial:
        seen.append(arm)
        return Trial("roof", {}, "measured", interval=Interval(1.0, 0.95, 1.05), wall_s=wall_s)

    monkeypatch.setattr(module, "measure", measure)
    session: Any = Session()
    session.options.allow = {"bits", "maths"}
    session.timeline = lambda arm: SimpleNamespace(mark=[RESIDENT])
    assert measure_roof(session, cast(Any, "script"), findings_of("memory-format"))[0] is not None
    assert seen == trials


def test_a_roof_that_still_loads_is_told_as_what_it_is_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    faster, logging = Interval(2.0, 1.9, 2.1), (Mark("ablation", "logging", "applied", 1),)
    quiet = replace(findings_of("gc"), phases={"data_wait": 0.01})
    assert roof_of(quiet, faster, monkeypatch)[0].how.startswith("resident batch; ")  # type: ignore[union-attr]
    assert roof_of(quiet, faster, monkeypatch, logging)[0].how.startswith("validation, ")  # type: ignore[union-attr]
    for waiting in (replace(quiet, phases={"data_wait": 0.3}), replace(findings_of("slow-iterator"), phases={})):
        roof, trial = roof_of(waiting, faster, monkeypatch, logging)
        assert roof is None and trial.reason == STILL_LOADS
        assert roof_of(waiting, faster, monkeypatch)[0] is not None
