"""When arms are launched in turn, and what the user is told of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from lap_support import Session

from hotlap.lap import one_at_a_time
from hotlap.records.trials import Trial
from hotlap.testing.lever_kit import findings_of


@pytest.mark.parametrize(
    ("world", "device", "wanted"), [(1, "H100", False), (2, "H100", True), (2, "cpu", False), (1, "cpu", False)]
)
def test_ranks_on_devices_are_not_frozen(world: int, device: str, wanted: bool) -> None:
    findings = findings_of("unfused")
    findings = replace(findings, script=replace(findings.script, world_size=world, device=device))
    assert one_at_a_time.several_devices(findings) is wanted


def test_a_trial_that_lacked_memory() -> None:
    assert one_at_a_time.lacked_memory(Trial("x", {}, "failed", "out of memory: the kernel ended it"))
    assert not one_at_a_time.lacked_memory(Trial("x", {}, "refused", "it may run out of memory"))


@pytest.mark.parametrize(("asked", "told"), [(True, "a larger --budget"), (False, "up to 15 minutes")])
def test_it_is_told_and_time_is_given_where_the_budget_is_ours(asked: bool, told: str) -> None:
    session: Any = Session()
    session.options.budget_asked = asked
    one_at_a_time.tell(session)
    assert told in session.lines[0] and session.budget_s == (100.0 if asked else 900.0)


def test_a_trial_takes_more_launches() -> None:
    session: Any = Session()
    assert one_at_a_time.launches_per_trial(session) == 1
    session.one_at_a_time = True
    assert one_at_a_time.launches_per_trial(session) == 3
