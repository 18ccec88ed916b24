"""When arms are launched in turn, and what the user is told of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from lap_support import Session

from hotlap.lap import one_at_a_time
from hotlap.records.rows import Setting
from hotlap.records.trials import Trial


@pytest.mark.parametrize(
    ("world", "device", "late", "wanted"),
    [(1, "H100", False, False), (2, "H100", False, True), (2, "cpu", False, False), (1, "cpu", True, False),
     (2, "cpu", True, True)],
)  # fmt: skip
def test_ranks_on_devices_are_not_frozen(world: int, device: str, late: bool, wanted: bool) -> None:
    settings = [Setting("device", {"name": "H100", "type": "cuda", "index": 1})] if late else []
    trainer = SimpleNamespace(header=SimpleNamespace(world=world, device=device), settings=settings)
    arm: Any = SimpleNamespace(poll=lambda: trainer)
    assert one_at_a_time.several_devices(arm) is wanted
    assert not one_at_a_time.several_devices(cast(Any, SimpleNamespace(poll=lambda: None)))


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
