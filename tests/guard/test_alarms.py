"""When the guard warns, and what it calls the cause: made runs, with a change and without."""

from __future__ import annotations

import random

import pytest
from guarded import BASE, Run

from hotlap.diagnose.surroundings import Around
from hotlap.guard.alarms import WINDOW_S
from hotlap.records.causes import AROUND, CAUSES
from hotlap.testing.timelines import TimelineBuilder, UserLine

LINE: UserLine = ("train.py", 48, "main", "x = prepare(x)")
FOUND_S = 60.0


def slower(factor: float, *phases: str) -> dict[str, float]:
    return {phase: BASE[phase] * factor for phase in phases}


@pytest.mark.parametrize("noise", [0.02, 0.15])
def test_a_steady_run_is_left_alone(noise: float) -> None:
    run = Run(noise=noise).go(400.0)
    assert not run.told and run.alarms.current is None


def test_a_slow_start_and_a_few_slow_seconds_are_no_drift() -> None:
    run = Run().go(10.0, forward=0.3).go(200.0)
    for _ in range(4):
        run.go(6.0, forward=0.2).go(120.0)
    assert not run.told


@pytest.mark.parametrize("before_s", [40.0, 500.0])
def test_a_change_is_told_once_and_in_time(before_s: float) -> None:
    run = Run().go(before_s).go(120.0, line=("residual", LINE), residual=0.09)
    assert len(run.told) == 1
    alarm = run.told[0]
    assert alarm.found_s <= FOUND_S and alarm.phase == "residual" and not alarm.growing
    assert alarm.at_s == pytest.approx(before_s, abs=10.0)
    assert alarm.after_s / alarm.before_s == pytest.approx(1.4, abs=0.06)
    assert alarm.where[0].line == 48 and alarm.cause in CAUSES
    assert run.alarms.current is alarm


@pytest.mark.parametrize("factor", [1.3, 2.0, 4.0])
def test_a_change_late_in_the_window_is_told_once_with_its_own_step_and_size(factor: float) -> None:
    run = Run().go(240.0)
    changed_at = run.builder.step_index
    run.go(150.0, **times(factor))
    assert len(run.told) == 1
    alarm = run.told[0]
    assert alarm.at_step == pytest.approx(changed_at, abs=4) and alarm.found_s <= FOUND_S
    assert alarm.after_s / alarm.before_s == pytest.approx(factor, rel=0.03)


def test_what_was_told_of_a_process_is_not_told_again_when_it_is_followed_again() -> None:
    run, other = Run(), Run().go(60.0)
    run.alarms.follow(100)
    run.go(60.0).go(60.0, residual=0.09)
    assert len(run.told) == 1
    run.alarms.follow(101)
    assert run.alarms.current is None
    assert not run.alarms.look(other.builder.build(), []).alarms
    run.alarms.follow(100)
    run.go(60.0, residual=0.09)
    assert len(run.told) == 1 and run.alarms.current is run.told[0]


def test_another_change_is_another_drift() -> None:
    run = Run().go(60.0).go(120.0, residual=0.09).go(120.0, residual=0.2)
    assert [a.after_s for a in run.told] == pytest.approx([0.28, 0.38], abs=0.015)


def test_a_drift_ends_and_its_cause_is_quiet_for_a_while() -> None:
    run = Run().go(60.0).go(60.0, residual=0.09)
    slow_until = run.builder.build().n_steps
    run.go(60.0)
    assert len(run.over) == 1 and run.alarms.current is None
    assert run.alarms.alarms[0].over_step == pytest.approx(slow_until, abs=2)
    run.go(60.0, residual=0.09).go(60.0)
    assert len(run.told) == 1, "it came back at once: one warning is enough"
    run.go(350.0).go(60.0, residual=0.09)
    assert len(run.told) == 2


def test_a_drift_that_begins_in_the_quiet_time_and_stays_is_told_when_it_is_over() -> None:
    run = Run().go(60.0).go(60.0, residual=0.09).go(60.0)
    run.go(200.0, residual=0.09)
    assert len(run.told) == 1, "quiet"
    run.go(200.0, residual=0.09)
    assert len(run.told) == 2 and run.alarms.current is run.told[-1]
    run.go(400.0, residual=0.09)
    assert len(run.told) == 2, "once"


def times(factor: float, **more: float) -> dict[str, float]:
    """A step of 0.2 s so many times as long."""
    return {**{phase: factor * seconds for phase, seconds in BASE.items()}, **more}


@pytest.mark.parametrize("samples_known", [True, False])
def test_steps_that_hold_more_are_no_drift_and_slower_ones_of_them_are(samples_known: bool) -> None:
    """A larger batch by schedule, or more micro-batches to a step."""
    batch = 32 if samples_known else 0
    run = Run(builder=TimelineBuilder(batch=batch)).go(100.0)
    run.builder._batch = 2 * batch
    run.go(100.0, micro=2, **times(2.0))
    assert not run.told
    changed_at = run.builder.step_index
    run.go(100.0, micro=2, **times(2.0, residual=0.16))
    assert [(a.phase, a.at_step - changed_at) for a in run.told] == [("residual", pytest.approx(0, abs=4))]
    assert (run.told[0].before_s, run.told[0].after_s) == pytest.approx((0.4, 0.54), rel=0.03)


def test_a_batch_that_grows_bit_by_bit_is_no_growth() -> None:
    run = Run(builder=TimelineBuilder(batch=32))
    for k in range(24):
        run.builder._batch = 32 + k
        run.go(10.0, **times(1.0 + k / 32))
    assert not run.told


def test_batches_that_are_padded_ever_longer_are_named_as_they_were_found() -> None:
    """Compute grows to four times in a quarter of a minute, and stays: neither a jump nor a growth that goes on."""
    quick = {phase: seconds / 12 for phase, seconds in BASE.items()}
    run = Run(noise=0.1).go(50.0, others=0.1, **quick)
    for k in range(40):
        grown = {phase: min(4.0, 1.0 + k / 5) * quick[phase] for phase in ("forward", "backward")}
        run.go(1.0, **{**quick, **grown})
        if k % 5 == 4:
            run.look(0.1)
    assert run.told[0].cause == "larger-batches"


def test_a_drift_of_slow_steps_ends_too() -> None:
    run = Run().go(200.0, **times(10)).go(200.0, **times(10, residual=0.9)).go(200.0, **times(10))
    assert len(run.told) == len(run.over) == 1 and run.alarms.current is None


def test_a_change_of_very_slow_steps_is_seen_in_a_long_run() -> None:
    run = Run().go(8000.0, **times(100)).go(500.0, **times(100, residual=10.0))
    assert [a.phase for a in run.told] == ["residual"]


def test_growth_is_told_with_its_line_and_again_when_much_worse() -> None:
    history: UserLine = ("train.py", 60, "main", "mean = np.mean(losses)")
    run = Run()
    for k in range(60):
        run.go(5.0, line=("residual", history), residual=0.01 * (1 + k / 4))
    first = run.told[0]
    assert first.growing and first.phase == "residual" and first.cause == "metrics-history"
    assert first.where[0].line == 60
    assert len(run.told) <= 2


def test_a_growth_that_began_late_is_told_as_one() -> None:
    history: UserLine = ("train.py", 60, "main", "mean = np.mean(losses)")
    run = Run().go(60.0)
    for k in range(12):
        run.go(5.0, line=("residual", history), residual=0.01 * (2 + k))
    first = run.told[0]
    assert first.cause == "metrics-history" and first.where[0].line == 60


@pytest.mark.parametrize("seed", [0, 1, 8, 19])
def test_a_growth_that_is_small_beside_the_step_is_told_as_one(seed: int) -> None:
    """By a fifth of the step, in a fifth of its time: what grows shows in the phase, not in the whole."""
    history: UserLine = ("train.py", 60, "main", "mean = np.mean(losses)")
    run = Run(noise=0.08, random=random.Random(seed)).go(60.0)
    for k in range(24):
        run.go(5.0, line=("residual", history), residual=0.01 + 0.0025 * k)
    first = run.told[0]
    assert first.cause == "metrics-history" and first.where[0].line == 60


def test_a_growth_that_noise_hides_at_first_did_not_come_at_once() -> None:
    """Its change is seen some way up: right before it the phase was nearly as long as right after it."""
    history: UserLine = ("train.py", 60, "main", "mean = np.mean(losses)")
    run = Run(noise=0.15, random=random.Random(4)).go(60.0)
    for k in range(14):
        run.go(5.0, line=("residual", history), residual=0.01 + 0.004 * k)
    first = run.told[0]
    assert not first.growing and first.cause in ("metrics-history", "growing-step") and first.where[0].line == 60


def test_a_change_that_grows_a_little_afterwards_is_no_growth() -> None:
    """What came at once is the cause, though the noise of what follows looks like a trend."""
    line: UserLine = ("train.py", 60, "main", "gc.collect()")
    run = Run(noise=0.02).go(60.0)
    for k in range(12):
        run.go(5.0, line=("residual", line), residual=0.3 * (1 + 0.02 * k))
    assert [(a.cause, a.growing) for a in run.told] == [("host-work", False)]


def test_slow_growth_shows_in_the_run_as_a_whole() -> None:
    run, steps_of_2_s = Run(noise=0.02), {phase: 10 * seconds for phase, seconds in BASE.items()}
    for k in range(30):
        run.go(60.0, **{**steps_of_2_s, "residual": 0.1 + 0.02 * k})
    assert run.told and run.told[0].phase == "residual" and run.told[0].growing
    assert run.told[0].found_s > WINDOW_S, "four minutes of it show nothing"


@pytest.mark.parametrize(
    ("phases", "others", "cause"),
    [
        (("forward", "backward", "optimizer", "residual"), (0.1, 1.0), "neighbour-load"),
        (("forward", "backward", "optimizer", "residual"), (0.1, 0.1), "throttling"),
        (("forward", "backward", "optimizer", "residual"), None, "drift"),
        (("forward", "backward"), (0.1, 0.1), "larger-batches"),
        (("forward", "backward"), (0.1, 1.0), "larger-batches"),
        (("residual",), (0.1, 1.0), "host-work"),
    ],
)
def test_the_machine_is_blamed_for_what_is_its_doing(
    phases: tuple[str, ...], others: tuple[float, float] | None, cause: str
) -> None:
    early, late = others or (None, None)
    factor = 8.0 if phases == ("residual",) else 1.6
    run = Run().go(60.0, others=early).go(90.0, others=late, **slower(factor, *phases))
    assert [a.cause for a in run.told] == [cause]
    assert cause in AROUND or cause in CAUSES


ALL = ("forward", "backward", "optimizer", "residual")


def adam(run: Run, parameters: int) -> Run:
    """Such an optimizer has stepped for the first time."""
    run.builder.setting("optimizer", **{"class": "AdamW", "tensors": 12, "parameters": parameters})
    return run


def test_another_model_in_the_same_process_is_a_new_beginning() -> None:
    run = adam(Run(), 10_000).go(60.0, others=0.1)
    adam(run, 90_000).go(90.0, others=0.1, **slower(1.6, *ALL))
    assert not run.told
    run.go(60.0, others=0.1).go(90.0, others=0.1, **slower(1.6, *ALL))
    assert [a.cause for a in run.told] == ["drift"], "the two in turn: no word of the processor"


def test_an_optimizer_that_is_made_anew_is_no_new_beginning() -> None:
    run = adam(Run(), 10_000).go(60.0, others=0.1)
    adam(run, 10_000).go(90.0, others=0.1, **slower(1.6, *ALL))
    assert [a.cause for a in run.told] == ["throttling"]


@pytest.mark.parametrize("grew", [("forward", "backward", "optimizer"), ("forward", "backward")])
@pytest.mark.parametrize("others", [(0.1, 0.1), (0.1, 1.0)])
def test_a_line_of_the_scripts_that_brings_most_of_it_is_told_though_the_rest_grew_too(
    grew: tuple[str, ...], others: tuple[float, float]
) -> None:
    """Work of the script's own that takes caches and memory from forward and backward, say."""
    slow = {**slower(1.3, *grew), **slower(20.0, "residual")}
    run = Run().go(60.0, others=others[0]).go(90.0, others=others[1], line=("residual", LINE), **slow)
    assert [(a.cause, a.where[0].line) for a in run.told] == [("host-work", 48)]


def test_swapping_and_quotas() -> None:
    for name, before, after, cause in (
        ("swapped_bytes_per_s", 0.0, 5e7, "swapping"),
        ("throttled_frac", 0.0, 0.4, "throttling"),
        ("waited_frac", 0.0, 0.5, "neighbour-load"),
    ):
        run = Run().go(60.0)
        split = run.builder.clock.now
        run.around = [Around(split - k * 10**9, **{name: before}) for k in range(50, 0, -5)]
        run.around += [Around(split + k * 10**9, **{name: after}) for k in range(5, 60, 5)]
        run.go(60.0, **slower(1.6, "forward", "backward", "optimizer"))
        assert [a.cause for a in run.told] == [cause]


@pytest.mark.parametrize(
    ("events_per_s", "phases", "cause"),
    [
        (3.0, ("forward", "backward", "optimizer"), "throttling"),
        (3.0, ("residual",), "host-work"),
        (0.04, ("forward", "backward", "optimizer"), "drift"),
    ],
)
def test_heat_is_blamed_where_everything_grew_and_it_lasts(
    events_per_s: float, phases: tuple[str, ...], cause: str
) -> None:
    run = Run().go(60.0)
    split = run.builder.clock.now
    run.around = [Around(split + k * 10**9, thermal_events_per_s=0.0) for k in range(-50, 0, 5)]
    run.around += [Around(split + k * 10**9, thermal_events_per_s=events_per_s) for k in range(5, 60, 5)]
    run.go(60.0, **slower(8.0 if phases == ("residual",) else 1.6, *phases))
    assert [a.cause for a in run.told] == [cause]


@pytest.mark.parametrize(("file", "again"), [("symbolic_convert.py", True), ("eval_frame.py", False)])
def test_a_forward_that_is_mostly_the_compiler_compiles_again(file: str, again: bool) -> None:
    """Of deep stacks only the ends are kept; what runs at each call of a compiled function is no compiling."""
    line: UserLine = (f"/site-packages/torch/_dynamo/{file}", 5, "step", "")
    run = Run().go(60.0).go(60.0, line=("forward", line), forward=0.3)
    assert [a.cause == "recompilation" for a in run.told] == [again]


@pytest.mark.parametrize(("read_bytes", "cause"), [(50_000_000, "storage-read"), (0, "augment")])
def test_the_loader_is_asked_what_it_does_longer(read_bytes: int, cause: str) -> None:
    run = Run()
    run.builder.loader(LINE, dataset_len=10**7)
    line = ("data_wait", LINE)
    run.go(60.0, load_s=0.01, line=line)
    run.go(60.0, load_s=0.11, line=line, read_bytes=read_bytes, data_wait=0.11)
    assert [a.cause for a in run.told] == [cause]
    assert run.told[0].evidence["load_s_after"] > 2 * run.told[0].evidence["load_s_before"]


def test_validations_that_grow() -> None:
    def validated(growth: float) -> Run:
        run = Run()
        for k in range(9):
            run.go(5.0)
            run.builder.event("validation", 1.0 + growth * k, ("train.py", 90, "validate", "evaluate(model)"))
            run.look()
        return run

    alarm = validated(0.2).told[0]
    assert (alarm.cause, alarm.phase) == ("growing-validation", "validation") and alarm.where[0].line == 90
    assert not validated(0.0).told


def test_collections_that_grow() -> None:
    run = Run().go(60.0).go(60.0, gc=0.08)
    assert [(a.cause, a.phase) for a in run.told] == [("gc", "gc")]
