"""A check of a change that does its periodic work more or less often, as far as that can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hotlap.lap.launches import Launches
from hotlap.lap.own_cadences import cadence_notes
from hotlap.proof.gate import gate
from hotlap.records.rows import PHASES, Event, Step
from hotlap.records.trials import Interval, Trial, Window
from hotlap.trial.periodic import gather

S = 10**9
STEP_S, VALIDATION_S = 0.1, 0.5
NAMES = {"baseline": "at main", "candidate": "in the working tree"}


def arm(n: int, every: int | Sequence[int], samples: int = 4) -> tuple[list[Step], list[Event]]:
    """So many steps, with a validation after every so many (0: never), or after those named."""
    named = range(every, n + 1, every) if isinstance(every, int) and every else every or ()
    steps, events, now = [], [], S
    for i in range(n):
        steps.append(Step(i, 1, now, round(STEP_S * S), [0] * len(PHASES), samples, 1))
        now += round(STEP_S * S)
        if i + 1 in named:
            events.append(Event("validation", now, round(VALIDATION_S * S), i))
            now += round(VALIDATION_S * S)
    return steps, events


def checked(
    baseline: tuple[list[Step], list[Event]], candidate: tuple[list[Step], list[Event]], *, whole: bool = True
) -> tuple[Interval, list[str]]:
    """The interval over four quiet launches, and what is said of the work; not ``whole``: a freeze cuts every event."""
    arms = {"baseline": baseline, "candidate": candidate}
    live = {label: [(0, None) if whole else (0, 1)] for label in arms}
    stats = gather({k: v[1] for k, v in arms.items()}, {k: v[0] for k, v in arms.items()}, live)
    windows = [
        Window(label, i * S, 10, 10 * arms[label][0][0].s, STEP_S)
        for i, label in enumerate(["baseline", "candidate"] * 5)
    ]
    trial = Trial("check", {}, "measured", windows=windows, periodic=stats.flat())
    wide = windows[0].samples != windows[1].samples
    launches = Launches(trial, per_sample=wide, own_cadences=True)
    for _ in range(3):
        launches.add(replace(trial, periodic={}))
    interval = launches.trial().interval
    assert interval is not None
    return interval, cadence_notes(trial, NAMES)


@pytest.mark.parametrize(
    ("baseline", "candidate", "ratio", "says"),
    [
        (50, 5, 0.11 / 0.2, "every 50 steps at main and every 5 steps in the working tree; each is charged"),
        (0, 5, 0.1 / 0.2, "never at main and every 5 steps in the working tree; each is charged"),
        (50, 45, 0.11 / (0.1 + 0.5 / 45), "every 50 steps at main and every 45 steps"),
        (5, 50, 0.2 / 0.11, "each is charged as often as it comes"),
    ],
)
def test_each_is_charged_for_what_it_does(baseline: int, candidate: int, ratio: float, says: str) -> None:
    interval, notes = checked(arm(400, baseline), arm(400, candidate))
    assert interval.ratio == pytest.approx(ratio, rel=1e-3) and says in notes[0] and len(notes) == 1


@pytest.mark.parametrize(("n", "other"), [(400, 400), (195, 205), (205, 195), (400, 130)])
def test_the_same_cadence_is_no_difference_however_far_both_came(n: int, other: int) -> None:
    interval, notes = checked(arm(n, 60), arm(other, 60))
    assert interval.ratio == pytest.approx(1.0) and interval.high / interval.low < 1.01 and not notes


@pytest.mark.parametrize(("baseline", "candidate"), [((), (150,)), ((150,), ()), ((190,), (60, 150))])
def test_what_may_be_chance_is_neither_proved_nor_refuted(
    baseline: tuple[int, ...], candidate: tuple[int, ...]
) -> None:
    """Half a second more or less in twenty: nothing where 5 % are allowed, all where 1 % is."""
    interval, notes = checked(arm(200, baseline), arm(200, candidate))
    assert gate(interval, 0.05) == "proved"
    assert gate(interval, 0.01) == ("not proved" if len(candidate) > len(baseline) else "proved")
    assert "may be chance" in notes[0]


def test_one_that_the_baseline_did_not_come_as_far_as_is_open() -> None:
    interval, _ = checked(arm(95, 100), arm(105, 100))
    assert interval.low < 0.96 < 0.999 < interval.high


def test_work_that_was_never_seen_whole_proves_nothing_where_it_comes_more_often() -> None:
    interval, notes = checked(arm(400, 0), arm(400, 5), whole=False)
    assert gate(interval, 0.05) == "not proved" and any("from begin to end" in note for note in notes)
    interval, notes = checked(arm(400, 50), arm(400, 50), whole=False)
    assert gate(interval, 0.05) == "proved" and "it is left out" in notes[0]


def test_steps_of_other_batches_are_charged_by_the_sample() -> None:
    interval, _ = checked(arm(400, 50), arm(400, 50, samples=8))
    assert interval.ratio == pytest.approx(2.0, rel=1e-3)
