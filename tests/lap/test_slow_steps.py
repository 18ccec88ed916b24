"""A search whose trials hold too few of the script's steps says how long a lap over it takes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.lap.incumbent import Search
from hotlap.lap.session import Session
from hotlap.lap.slow_steps import enough_budget_s, least_trial_s, make_room_for_roof, too_slow
from hotlap.records.trials import TOO_FEW, Trial
from hotlap.testing.lever_kit import findings_of
from hotlap.trial.pauses import Cycle

FAILED = Trial("together", {}, "failed", reason=f"only 0 {TOO_FEW}; give it a larger --budget")


def lap(step_s: float, trials: list[Trial]) -> tuple[Any, Any, Search]:
    findings = findings_of("memory-format")
    findings = replace(findings, throughput=replace(findings.throughput, step_s=step_s))
    machine = SimpleNamespace(accelerators=[])
    session = SimpleNamespace(cycle=Cycle(), budget_s=225.0, one_at_a_time=False, machine=machine, step_s=step_s)
    state = Search(cast(Any, "baseline"), findings, trials=trials)
    return session, SimpleNamespace(findings=findings, start_s=10.0), state


def test_slow_steps_are_told_with_the_budget_that_they_need() -> None:
    session, baseline, state = lap(4.5, [FAILED])
    told = too_slow(session, baseline, state, 100.0)
    assert (
        told is not None and told.startswith("Steps of 4.50 s are too slow for this budget") and "--budget 22m" in told
    )


def test_the_budget_holds_the_trial_and_the_proof() -> None:
    session, baseline, _ = lap(4.5, [])
    trial_s = 10.0 + 3 * 4.5 + 4 * (4 + 5) * 4.5
    assert least_trial_s(session, baseline) == pytest.approx(trial_s)
    assert enough_budget_s(session, baseline, 1000.0) == pytest.approx((1000.0 + trial_s) / 0.6)
    proof_s = 2 * (10.0 + 3 * 4.5) + 3 * (4 + 5) * 4.5
    assert enough_budget_s(session, baseline, 0.0) == pytest.approx(3 * proof_s / 0.39)


@pytest.mark.parametrize(
    ("step_s", "trials"),
    [
        (0.02, [FAILED]),  # neighbours spoiled the windows
        (4.5, [Trial("together", {}, "failed", reason="the script ended")]),
    ],
)
def test_other_reasons_are_not_put_on_slow_steps(step_s: float, trials: list[Trial]) -> None:
    session, baseline, state = lap(step_s, trials)
    assert too_slow(session, baseline, state, 60.0) is None


def test_nothing_is_told_where_a_lever_was_kept() -> None:
    session, baseline, state = lap(4.5, [FAILED])
    state.moves.append(cast(Any, "channels-last"))
    assert too_slow(session, baseline, state, 100.0) is None


@pytest.mark.parametrize(
    ("step_s", "asked", "budget_s"), [(0.02, False, 225.0), (3.0, True, 225.0), (3.0, False, 309.0)]
)
def test_our_own_budget_holds_the_roof_of_slow_steps(step_s: float, asked: bool, budget_s: float) -> None:
    findings = replace(findings_of("memory-format").throughput, step_s=step_s)
    lines: list[str] = []
    session: Any = SimpleNamespace(
        cycle=Cycle(), budget_s=225.0, one_at_a_time=False, machine=SimpleNamespace(accelerators=[]), elapsed_s=20.0,
        extra_s=0.0, step_s=step_s, options=SimpleNamespace(budget_asked=asked),
        listener=SimpleNamespace(line=lines.append),
    )  # fmt: skip
    session.left_s = lambda: session.budget_s - session.elapsed_s
    session.grow = lambda seconds: Session.grow(session, seconds)
    baseline = cast(Any, SimpleNamespace(findings=SimpleNamespace(throughput=findings), start_s=10.0))
    assert make_room_for_roof(session, baseline) is None
    assert session.budget_s == pytest.approx(budget_s)
    assert bool(lines) == (budget_s > 225.0) and all("Steps of 3.00 s are slow" in line for line in lines)


@pytest.mark.parametrize(("step_s", "told"), [(0.02, False), (4.0, False), (10.4, True)])
def test_a_budget_that_holds_no_roof_is_not_spent_on_it(step_s: float, told: bool) -> None:
    session, baseline, _ = lap(step_s, [])
    session.options, session.elapsed_s = SimpleNamespace(budget_asked=True), 20.0
    session.left_s = lambda: session.budget_s - session.elapsed_s
    session.extra_s, session.grow = 0.0, lambda seconds: Session.grow(session, seconds)
    why = make_room_for_roof(session, baseline)
    assert why == ("steps of 10.4 s are too slow for it in this budget" if told else None)
