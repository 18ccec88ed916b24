"""Several pairs of launches make one trial."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hotlap.lap import launches as module
from hotlap.lap.launches import Launches
from hotlap.lap.measure import Question
from hotlap.lap.session import Session
from hotlap.records.trials import TOO_FEW, Trial, Window
from hotlap.trial.pauses import Cycle

SECOND = 10**9


def trial(baseline_s: float, candidate_s: float, **more: Any) -> Trial:
    turns = [("baseline", baseline_s), ("candidate", candidate_s)] * 5
    windows = [Window(arm, i * SECOND, 10, 10, s) for i, (arm, s) in enumerate(turns)]
    losses = {"baseline": [1.0, baseline_s], "candidate": [1.0, candidate_s]}
    return Trial("proof", {}, more.pop("status", "measured"), windows=windows, losses=losses, **more)


def test_each_launch_counts_once_however_long_it_was_measured() -> None:
    told = Launches(trial(0.2, 0.1))
    told.add(trial(0.2, 0.08))
    told.add(trial(0.2, 0.125))
    whole = told.trial()
    assert [w.launch for w in whole.windows] == [0] * 10 + [1] * 10 + [2] * 10
    assert whole.interval is not None and whole.interval.launches == 3
    assert whole.interval.ratio == pytest.approx(2.0, rel=1e-6)
    assert whole.interval.low < 1.0  # three launches that differ by a quarter say little
    assert [pair.losses["candidate"] for _, pair in told.pairs[1:]] == [[1.0, 0.08], [1.0, 0.125]]


def test_periodic_work_of_the_first_launch_counts_in_all() -> None:
    validation = {"validation_s": 1.0, "validation_n": 3.0, "validation_per_step": 0.1}
    told = Launches(trial(0.2, 0.1, periodic={"baseline": validation, "candidate": validation}))
    told.add(trial(0.2, 0.1))
    told.add(trial(0.2, 0.1))
    found = told.trial().interval
    assert found is not None and found.ratio == pytest.approx(1.5)


def test_knobs_are_compared_in_samples_each_arm_at_its_own_cadence() -> None:
    first = trial(0.2, 0.4, periodic={
        "baseline": {"validation_s": 1.0, "validation_per_step": 0.5, "validation_per_sample": 0.02},
        "candidate": {"validation_s": 1.0, "validation_per_step": 0.5, "validation_per_sample": 0.01},
    })  # fmt: skip
    wide = [replace(w, samples=40) if w.arm == "candidate" else w for w in first.windows]
    told = Launches(replace(first, windows=wide), per_sample=True)
    found = told.trial().interval
    assert found is not None and found.ratio == pytest.approx((0.2 + 0.02) / (0.1 + 0.01))


def test_one_launch_is_not_taken_for_more() -> None:
    found = Launches(trial(0.2, 0.1)).trial().interval
    assert found is not None and found.launches == 1
    assert found.low < 2.0 / 1.25 and math.isclose(found.ratio, 2.0)


def test_a_launch_that_failed_is_told_and_left_out() -> None:
    told = Launches(trial(0.2, 0.1))
    told.add(trial(0.2, 0.1, status="failed", reason="out of memory"))
    whole = told.trial()
    assert "launch 2: out of memory" in whole.notes
    assert {w.launch for w in whole.windows} == {0} and len(told.pairs) == 1


def test_a_first_pair_too_short_for_slow_steps_is_made_up_for_by_later_ones() -> None:
    short = replace(trial(0.2, 0.1), status="failed", reason=f"only 1 {TOO_FEW}; give it a larger --budget")
    told = Launches(replace(short, windows=short.windows[:2]))
    assert told.trial().status == "failed"
    told.add(trial(0.2, 0.1))
    told.add(trial(0.2, 0.1))
    whole = told.trial()
    assert whole.status == "measured" and not whole.reason and whole.interval is not None
    assert whole.interval.ratio == pytest.approx(2.0)
    crashed = Launches(replace(short, reason="crashed with exit code 1"))
    crashed.add(trial(0.2, 0.1))
    assert crashed.trial().status == "failed"


class Clock:
    """A session with seconds left, and arms that are only names."""

    def __init__(self, left: float, may_lend: bool = False) -> None:
        self.left, self.may_lend = left, may_lend
        self.stage = ""
        self.one_at_a_time, self.step_s = False, 0.0
        self.discarded: list[str] = []
        self.cycle = Cycle()
        self.machine = SimpleNamespace(accelerators=[])

    def left_s(self, share: float) -> float:
        return self.left

    def lendable_s(self) -> float:
        return 1e5 if self.may_lend else 0.0

    def lend(self, seconds: float, share: float) -> None:
        self.left += max(0.0, seconds - self.left) if self.may_lend else 0.0

    def discard(self, arm: str) -> None:
        self.discarded.append(arm)


def go_on(
    monkeypatch: pytest.MonkeyPatch, left: float, may_lend: bool = False, longer_s: float = 0.0
) -> tuple[Launches, Clock, list[Question]]:
    asked: list[Question] = []
    clock = Clock(left, may_lend)

    def measure(session: Clock, one: str, other: str, question: Question) -> Trial:
        asked.append(question)
        session.left -= question.seconds + 2 * (module.START_S + module.WARM_UP_S) + longer_s
        return trial(0.2, 0.1)

    monkeypatch.setattr(module, "measure", measure)
    told = Launches(trial(0.2, 0.1), warm_steps=7)
    told.go_on(cast(Session, clock), cast(Any, lambda label, seed: f"{label}{seed}"), 4, 0.97)
    return told, clock, asked


def test_the_time_left_is_shared_among_the_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    told, clock, asked = go_on(monkeypatch, 60.0)
    assert [q.seconds for q in asked] == pytest.approx([8.0, 8.0, 8.0])
    assert all(q.whole and q.warm_steps == 7 for q in asked)
    assert [q.candidate_first for q in asked] == [True, False, True], "the first pair began with the baseline"
    assert clock.discarded == ["baseline1", "candidate1", "baseline2", "candidate2", "baseline3", "candidate3"]
    assert told.begun == 4 and told.notes == []


def test_no_launch_is_begun_that_the_time_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    told, _, asked = go_on(monkeypatch, 40.0)
    assert [q.seconds for q in asked] == pytest.approx([8.0, 8.0])
    assert told.notes == ["3 of 4 pairs of launches: the budget had no time for more"]
    told, _, asked = go_on(monkeypatch, 15.0)
    assert asked == [] and told.begun == 1


def test_the_launches_that_a_claim_needs_are_lent_time_even_where_one_took_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, clock, asked = go_on(monkeypatch, 15.0, may_lend=True, longer_s=7.0)
    assert told.begun == 3 and [q.seconds for q in asked] == pytest.approx([told.least_s(cast(Session, clock))] * 2)
    assert told.notes == ["3 of 4 pairs of launches: the budget had no time for more"]


def test_slow_steps_get_fewer_and_longer_launches() -> None:
    session = cast(Any, Clock(0.0))
    quick, slow = Launches(trial(0.02, 0.01)), Launches(trial(0.6, 0.4))
    assert quick.least_s(session) == module.LEAST_S
    # three pairs of turns: three steps, one that a freeze cuts, the one it ends with, and every other time two drops
    assert slow.least_s(session) == pytest.approx(3 * 6.0 * (0.6 + 0.4))
    assert slow.missing_s(session) == pytest.approx(2 * (slow.ready_s(session) + slow.least_s(session)))
    cached = replace(slow, warm_steps=50)
    assert cached.ready_s(session) == pytest.approx(slow.ready_s(session) + 50 * 0.4 - module.WARM_UP_S)
    for _ in range(2):
        slow.add(trial(0.6, 0.4))
    assert slow.missing_s(session) == 0


def test_a_pair_that_took_longer_teaches_what_the_next_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(60.0, may_lend=True)
    asked: list[Question] = []

    def measure(session: Clock, one: str, other: str, question: Question) -> Trial:
        asked.append(question)
        took_s = question.seconds + 2 * (module.START_S + module.WARM_UP_S) + 20.0  # its loaders start for so long
        session.left -= took_s
        too_short = len(asked) == 2
        failed = {"status": "failed", "reason": f"only 2 {TOO_FEW}"} if too_short else {}
        return trial(0.2, 0.1, wall_s=took_s, **failed)

    monkeypatch.setattr(module, "measure", measure)
    told = Launches(trial(0.2, 0.1))
    least_s = told.least_s(cast(Session, clock))
    told.go_on(cast(Session, clock), cast(Any, lambda label, seed: label), 4, 0.97)
    assert told.pair_s(cast(Session, clock)) == pytest.approx(told.ready_s(cast(Session, clock)) + 2 * least_s + 20.0)
    assert asked[2].seconds == pytest.approx(2 * least_s), "lent, and longer than the one in which too few counted"
    found = told.trial().interval
    assert found is not None and found.launches == 3


def test_no_launch_follows_when_nothing_more_is_to_be_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Question] = []
    monkeypatch.setattr(module, "measure", lambda s, a, b, question: asked.append(question) or trial(0.2, 0.1))
    told = Launches(trial(0.2, 0.1))
    made = cast(Any, lambda label, seed: label)
    told.go_on(cast(Session, Clock(500.0)), made, 4, 0.97, hopeless=lambda: len(told.pairs) >= 3)
    assert len(asked) == 2 and told.notes == []


def decide(monkeypatch: pytest.MonkeyPatch, first: list[float], later: float, **clock: Any) -> tuple[Launches, int]:
    """Four pairs of launches in which the candidate's steps took so long, then as many as :meth:`decide` wants; and how
    many those were. The baseline's take 0.2 s."""
    session = Clock(clock.pop("left", 0.0), **clock)

    def measure(session: Clock, one: str, other: str, question: Question) -> Trial:
        session.left -= question.seconds + 2 * (module.START_S + module.WARM_UP_S)
        return trial(0.2, later * (1.0 + 0.004 * (told.begun % 3)))

    monkeypatch.setattr(module, "measure", measure)
    told = Launches(trial(0.2, first[0]))
    for candidate_s in first[1:]:
        told.add(trial(0.2, candidate_s))
    planned = told.begun
    told.decide(cast(Session, session), cast(Any, lambda label, seed: label), 0.99)
    return told, told.begun - planned


def test_a_small_gain_that_is_open_after_the_planned_launches_gets_more(monkeypatch: pytest.MonkeyPatch) -> None:
    open_still = [0.19, 0.2, 0.185, 0.195]
    told, more = decide(monkeypatch, open_still, 0.197, may_lend=True)
    interval = told.trial().interval
    assert more == module.MOST_PAIRS - 4 and interval is not None
    assert interval.low > 1.0 and interval.launches == module.MOST_PAIRS and interval.level == module.LAST_LEVEL
    assert "4 pairs of launches left open whether the plan is faster: up to 14 more" in told.notes


def test_a_gain_that_is_plain_half_way_takes_no_more_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    told, more = decide(monkeypatch, [0.19, 0.2, 0.185, 0.195], 0.185, may_lend=True)
    interval = told.trial().interval
    assert more == (module.MOST_PAIRS - 4) // 2 and interval is not None
    assert interval.low > 1.0 and interval.level == module.HALF_LEVEL


def test_what_looks_slower_half_way_takes_no_more_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    told, more = decide(monkeypatch, [0.19, 0.2, 0.185, 0.195], 0.21, may_lend=True)
    interval = told.trial().interval
    assert more == (module.MOST_PAIRS - 4) // 2 and interval is not None and interval.low < 1.0


@pytest.mark.parametrize(
    ("first", "clock"),
    [
        ([0.100, 0.101, 0.102, 0.101], {"may_lend": True}),  # plainly faster
        ([0.21, 0.2, 0.22, 0.205], {"may_lend": True}),  # slower if anything
        ([0.19, 0.2, 0.185], {"left": 20.0}),  # no time for two pairs
        ([0.19, 0.2], {"may_lend": True}),  # too few to say how launches differ
    ],
)
def test_a_matter_that_is_decided_or_out_of_reach_gets_no_more(
    monkeypatch: pytest.MonkeyPatch, first: list[float], clock: dict[str, Any]
) -> None:
    told, more = decide(monkeypatch, first, 0.19, **clock)
    interval = told.trial().interval
    assert more == 0 and told.notes == [] and interval is not None and interval.level == module.ONE_LOOK_LEVEL


def test_what_is_seen_at_the_first_look_is_seen_at_a_level_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else looking twice would call equals faster more often than once in a hundred."""
    between = [0.19, 0.1925, 0.188, 0.194]
    one_look, more = decide(monkeypatch, between, 0.2)
    found = one_look.trial().interval
    assert found is not None and found.low > 1.0 and more == 0
    more_looks, more = decide(monkeypatch, between, 0.2, may_lend=True)
    found = more_looks.trial().interval
    assert more > 0 and found is not None and found.low < 1.0
    spent = sum(1 - level for level in (module.FIRST_LEVEL, module.HALF_LEVEL, module.LAST_LEVEL))
    assert pytest.approx(1 - module.ONE_LOOK_LEVEL) == spent
