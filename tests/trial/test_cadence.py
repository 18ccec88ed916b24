"""Arms whose steps hold different samples: periodic work per sample, and losses as far as both have seen."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from hotlap.records.rows import PHASES, Event, Step
from hotlap.trial.arm import Arm
from hotlap.trial.cadence import rates_per_sample
from hotlap.trial.marks import common_losses
from hotlap.trial.periodic import KINDS, gather

S = 1_000_000_000


def steps(n: int, samples: int) -> list[Step]:
    return [Step(i, 1, i * S, S, [0] * len(PHASES), samples, 1) for i in range(n)]


def validations(*at: int) -> list[Event]:
    """Validation right after so many steps."""
    return [Event("validation", i * S, S // 2, i) for i in at]


def rates(baseline: list[Event], candidate: list[Event], n: int = 100, wide: int = 16) -> list[float]:
    rows = {"baseline": steps(100, 8), "candidate": steps(n, wide)}
    told = rates_per_sample({"baseline": baseline, "candidate": candidate}, rows, KINDS)
    return [told[arm]["validation"] for arm in ("baseline", "candidate")]


def test_each_arm_has_its_own_cadence() -> None:
    assert rates(validations(30, 60, 90), validations(20, 60)) == pytest.approx([1 / 240, 1 / (40 * 16)])


def test_work_that_came_early_and_no_more_is_rare() -> None:
    assert rates(validations(2, 4, 6, 8), validations(2, 4, 6, 8)) == pytest.approx([4 / (98 * 8), 4 / (98 * 16)])
    assert rates(validations(2, 4, 6, 8), [])[0] == pytest.approx(4 / (98 * 8))


def test_work_every_so_many_steps_comes_half_as_often_in_steps_twice_as_wide() -> None:
    base, wide = rates(validations(30, 60, 90), validations(30, 60, 90))
    assert base == pytest.approx(2 * wide)


def test_a_candidate_that_met_it_once_may_do_it_twice_in_that_time() -> None:
    assert rates(validations(30, 60, 90), validations(90))[1] == pytest.approx(2 / 1600)
    assert rates(validations(30, 60, 90), [])[1] == pytest.approx(1 / 1600)


def test_a_short_look_wins_nothing() -> None:
    base, candidate = rates(validations(30, 60, 90), [], n=3)
    assert candidate == base


def test_a_baseline_that_met_it_once_is_given_the_least() -> None:
    base, candidate = rates(validations(50), [])
    assert base == pytest.approx(1 / 800) and candidate == pytest.approx(1 / 1600)
    assert rates([], validations(20, 40))[0] == 0.0


def test_more_often_than_the_baseline_is_seen() -> None:
    base, candidate = rates(validations(20, 40, 60, 80), validations(5, 10, 15), n=20, wide=8)
    assert candidate == pytest.approx(4 * base)


def test_the_first_epoch_is_no_cadence_and_unknown_samples_give_none() -> None:
    epochs = [Event("loader_start", i * S, S // 10, i) for i in (0, 40, 80)]
    rows = {"baseline": steps(100, 8), "candidate": steps(100, 8)}
    events = {"baseline": epochs, "candidate": epochs}
    assert rates_per_sample(events, rows, KINDS)["baseline"] == {"epoch_start": pytest.approx(1 / 320)}
    assert rates_per_sample(events, {**rows, "candidate": steps(100, 0)}, KINDS) == {}


def test_seconds_per_sample_and_their_place_in_the_trial() -> None:
    rows = {"baseline": steps(100, 8), "candidate": steps(100, 16)}
    events = {"baseline": validations(30, 60, 90), "candidate": validations(20, 60)}
    live = {"baseline": [(0, None)], "candidate": [(0, None)]}
    stats = gather(events, rows, live)
    assert stats.sample_s("baseline") == pytest.approx(0.5 / 240)
    assert stats.sample_s("candidate") == pytest.approx(0.5 / 640)
    assert stats.flat()["candidate"]["validation_per_sample"] == pytest.approx(1 / 640)
    assert stats.flat()["candidate"]["validation_per_step"] == pytest.approx(3 / 100)
    unknown = gather(events, {**rows, "candidate": steps(100, 0)}, live)
    assert unknown.sample_s("baseline") is None


def test_work_that_only_the_candidate_does_costs_it() -> None:
    rows = {"baseline": steps(100, 8), "candidate": steps(100, 8)}
    live = {"baseline": [(0, None)], "candidate": [(0, None)]}
    stats = gather({"baseline": [], "candidate": validations(20, 40, 60, 80)}, rows, live)
    assert stats.sample_s("baseline") == 0.0 and stats.sample_s("candidate") == pytest.approx(0.5 / 160)
    assert stats.candidate_s == 0.0 and stats.notes == []


class StubArm:
    """An arm as far as its losses are asked for: one start, a loss a step."""

    def __init__(self, losses: list[float] | list[float | None], samples: list[int]) -> None:
        rows = [replace(steps(1, n)[0], i=i, l=[loss]) for i, (loss, n) in enumerate(zip(losses, samples, strict=True))]
        self.rows = rows

    def trainers(self) -> list[StubArm]:
        return [self]

    @property
    def steps(self) -> list[Step]:
        return self.rows


def common(baseline: StubArm, candidate: StubArm) -> tuple[dict[str, list[float | None]], dict[str, list[int]]]:
    return common_losses({"baseline": cast(Arm, baseline), "candidate": cast(Arm, candidate)})


def test_losses_are_kept_as_far_as_both_arms_have_seen_samples() -> None:
    losses, samples = common(StubArm([5.0, 4.0, 3.0, 2.0], [8] * 4), StubArm([5.0, 3.0, 1.0], [16, 12, 16]))
    assert losses == {"baseline": [5.0, 4.0, 3.0, 2.0], "candidate": [5.0, 3.0]}
    assert samples == {"baseline": [8] * 4, "candidate": [16, 12]}
    losses, _ = common(StubArm([5.0, 4.0], [8] * 2), StubArm([5.0, 3.0, 1.0], [8] * 3))
    assert losses["candidate"] == [5.0, 3.0]


def test_losses_of_unknown_samples_are_kept_as_far_as_both_arms_made_steps() -> None:
    losses, samples = common(StubArm([5.0, 4.0], [8, 0]), StubArm([5.0, 3.0, 1.0], [16] * 3))
    assert losses == {"baseline": [5.0, 4.0], "candidate": [5.0, 3.0]} and samples["baseline"] == [8, 0]
    assert common(StubArm([], []), StubArm([1.0], [4]))[0] == {"baseline": [], "candidate": []}


def test_a_loss_that_is_no_number_is_kept_as_such() -> None:
    """What a diverged training had before it diverged would prove it to be as good."""
    losses, _ = common(StubArm([5.0, 4.0, None, None], [8] * 4), StubArm([5.0] * 4, [8] * 4))
    assert losses == {"baseline": [5.0, 4.0, None, None], "candidate": [5.0] * 4}
