"""How often periodic work comes, where it does not come evenly."""

from __future__ import annotations

import pytest

from hotlap.diagnose.diagnose import diagnose
from hotlap.diagnose.periodic import cadence, epoch_starts
from hotlap.records.findings import Findings
from hotlap.records.rows import PHASES, Step
from hotlap.testing.timelines import TimelineBuilder, cpu_machine


def found(builder: TimelineBuilder) -> Findings:
    return diagnose(builder.build(), cpu_machine(), "train.py")


def row(i: int, lo_n: int = 0) -> Step:
    return Step(i, 1, i, 1, [0] * len(PHASES), 8, 1, lo_n, lo_n)


def test_what_comes_evenly_comes_at_its_gap() -> None:
    assert cadence([50, 100, 150], 180) == 50.0
    assert cadence([50, 100, 150], 200) == 50.0
    assert cadence([70], 100) == 70.0 and cadence([20], 100) == 80.0 and cadence([], 100) is None


def test_what_came_early_and_no_more_is_rare() -> None:
    assert cadence([10, 20, 30, 40], 1000) == pytest.approx(990 / 4)


@pytest.mark.parametrize(
    ("kind", "cause"), [("validation", "validation-cadence"), ("checkpoint", "checkpoint-blocking")]
)
def test_what_came_after_the_first_step_alone_is_in_no_figure(kind: str, cause: str) -> None:
    """A loop that counts from 0 and validates `if step % 500 == 0`."""
    builder = TimelineBuilder().steps(2, forward=0.01, backward=0.01).event(kind, 2.0)
    seen = found(builder.steps(60, forward=0.01, backward=0.01))
    assert cause not in [finding.cause for finding in seen.findings] and seen.phases[kind] == 0.0
    assert seen.throughput.step_s == pytest.approx(0.02, rel=0.05)
    assert any(note.startswith(f"One {kind} of 2 s came right after the first step") for note in seen.notes)
    again = found(builder.event(kind, 2.0).steps(60, forward=0.01, backward=0.01))
    assert cause in [finding.cause for finding in again.findings], "now it is known: every 60 steps"
    assert not any("right after the first step" in note for note in again.notes)


def test_gaps_that_alternate_count_by_their_mean() -> None:
    assert cadence([100, 101, 201, 202, 302, 303], 310) == pytest.approx(203 / 5)


def test_a_checkpoint_whenever_the_score_is_the_best_so_far() -> None:
    builder = TimelineBuilder()
    for _ in range(4):
        builder.steps(10, forward=0.01, backward=0.01).event("checkpoint", 0.2)
    assert found(builder.steps(960, forward=0.01, backward=0.01)).phases["checkpoint"] == pytest.approx(0.04, abs=0.005)


@pytest.mark.parametrize("loaders", [1, 2])
def test_epochs_that_read_several_loaders(loaders: int) -> None:
    rows = [row(i, loaders if i in (0, 100) else 0) for i in range(150)]
    assert epoch_starts(rows, None).every == 100 / loaders


@pytest.mark.parametrize(("micro", "samples", "every"), [(1, 32, 100), (3, 32, 100), (4, 128, 25), (1, 4, 800)])
def test_an_epoch_in_steps_by_its_samples(micro: int, samples: int, every: float) -> None:
    """Backwards are no batches: a GAN has several of one batch, and one batch may be split over several updates."""
    builder = TimelineBuilder(batch=samples).steps(1, micro=micro, lo=0.5, data_wait=0.01, forward=0.01)
    builder.steps(60, micro=micro, data_wait=0.01, forward=0.01).loader(batch_size=32, batches_per_epoch=100)
    assert found(builder).step_model.steps_per_epoch == pytest.approx(every)


def test_an_epoch_in_steps_where_its_last_batch_is_small() -> None:
    builder = TimelineBuilder(batch=32)
    for epoch in range(10):
        builder.steps(1, lo=0.5 if epoch == 0 else 0.0, data_wait=0.01, forward=0.01)
        builder._batch = 8
        builder.steps(1, data_wait=0.01, forward=0.01)
        builder._batch = 32
    builder.loader(batch_size=32, batches_per_epoch=2, dataset_len=40)
    assert found(builder).step_model.steps_per_epoch == pytest.approx(2, rel=0.1)


def test_an_epoch_in_steps_where_two_loaders_are_read_at_once() -> None:
    builder = TimelineBuilder(batch=64).steps(1, lo=0.5, data_wait=0.01, forward=0.01)
    builder.steps(60, data_wait=0.01, forward=0.01)
    builder.loader(id=1, batch_size=32, batches_per_epoch=100).loader(id=2, batch_size=32, batches_per_epoch=100)
    assert found(builder).step_model.steps_per_epoch == pytest.approx(100)
