"""Causes of trainings with several ranks, on the timelines of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from diagnose_scripts import COMPUTE, judge

from hotlap.records.findings import Finding
from hotlap.testing.timelines import TimelineBuilder, UserLine

READ: UserLine = ("train.py", 31, "__getitem__", "wave = read(path)")
BARRIER: UserLine = ("train.py", 60, "main", "dist.barrier()")


def causes(*builders: TimelineBuilder) -> dict[str, Finding]:
    """The diagnosis of rank 0 beside the others."""
    for rank, builder in enumerate(builders):
        timeline = builder.build()
        timeline.header = replace(timeline.header, rank=rank, world=len(builders))
    first = builders[0].build()
    first.ranks = [b.build() for b in builders[1:]]
    for other in first.ranks:
        first.source.update(other.source)
    return {f.cause: f for f in judge(builders[0]).findings}


def rank(**phases: Any) -> TimelineBuilder:
    return TimelineBuilder().steps(60, **{**COMPUTE, **phases})


def test_the_late_rank_and_its_reason() -> None:
    late = rank(data_wait=0.012, backward=0.010).stack("data_wait", 40, READ)
    found = causes(rank(backward=0.022), late, rank(backward=0.021, residual=0.001))["straggler"]
    assert found.evidence["rank"] == 1 and found.evidence["late_phase"] == "data_wait"
    assert found.where[0].line == 31 and "rank 1" in found.advice
    assert found.seconds_per_step == pytest.approx(0.0115, abs=0.0006)
    assert "straggler" not in causes(rank(), rank(), rank())


def test_work_that_nobody_waits_for_is_no_straggler() -> None:
    assert "straggler" not in causes(rank(), rank(data_wait=0.012))
    assert "straggler" not in causes(rank(data_wait=0.012)), "a single process has nobody to wait for"


def test_the_first_rank_may_be_the_late_one() -> None:
    log = ("train.py", 77, "main", "print(loss)")
    late = rank(logging=0.008).stack("logging", 30, log)
    found = causes(late, rank(backward=0.018))["straggler"]
    assert found.evidence["rank"] == 0 and found.where[0].line == 77


def test_waiting_for_others_is_no_compute() -> None:
    def shares(backward: float) -> float:
        model = rank(backward=backward).setting("ddp", step=2, **SEARCHING).setting("ddp", step=4, **SEARCHING)
        other = rank(data_wait=backward - 0.010)
        other.setting("ddp", step=2, **SEARCHING).setting("ddp", step=4, **SEARCHING)
        return causes(model, other)["ddp-find-unused"].evidence["compute_s"]

    assert shares(0.010) == pytest.approx(shares(0.020))


SEARCHING: dict[str, Any] = {"find_unused": True, "static_graph": False, "parameters": 8, "unreached": 0}


def test_find_unused_for_nothing() -> None:
    line = ("train.py", 12, "main", "model = DistributedDataParallel(net, find_unused_parameters=True)")

    def searched(other: dict[str, Any] | None = None, **changes: Any) -> dict[str, Finding]:
        builders = rank(), rank()
        for builder, more in zip(builders, (changes, changes if other is None else other), strict=True):
            builder.setting("ddp", line, step=2, **{**SEARCHING, **more, "unreached": None})
            for step in (4, 6, 20):
                builder.setting("ddp", line, step=step, **{**SEARCHING, **more})
        return causes(*builders)

    found = searched()["ddp-find-unused"]
    assert found.where[0].line == 12 and found.evidence["looks"] == 3 and found.evidence["basis"] == "prior"
    for changes in ({"unreached": 1}, {"unreached": None}, {"find_unused": False}, {"static_graph": True}):
        assert "ddp-find-unused" not in searched(**changes), changes
    assert "ddp-find-unused" not in searched(other={"unreached": 1}), "used on this rank, and not on the other"
    alone = rank().setting("ddp", line, step=4, **SEARCHING).setting("ddp", line, step=6, **SEARCHING)
    assert "ddp-find-unused" in causes(alone)
    alone.build().header = replace(alone.build().header, world=16)
    assert "ddp-find-unused" not in {f.cause for f in judge(alone).findings}, "the others' timelines are elsewhere"


def test_gradients_that_are_exchanged() -> None:
    line = ("train.py", 12, "main", "model = DistributedDataParallel(net)")

    def exchanged(ranks: int = 2, **facts: Any) -> dict[str, Finding]:
        builder = rank().setting("ddp", line, step=2, **{"gradient_bytes": 8_000_000, "bucket_view": False, **facts})
        return causes(builder, *(rank() for _ in range(ranks - 1)))

    found = exchanged()["gradient-exchange"]
    assert found.where[0].line == 12 and "gradient_as_bucket_view=True" in found.advice
    assert found.evidence["copy_s"] == pytest.approx(0.002) and found.evidence["basis"] == "prior"
    view = exchanged(bucket_view=True, gradient_bytes=40_000_000)["gradient-exchange"]
    assert view.evidence["copy_s"] == 0.0 and "gradient_as_bucket_view" not in view.advice
    whole = exchanged(gradient_bytes=8_000_000_000)["gradient-exchange"]
    assert whole.seconds_per_step == pytest.approx(0.010, rel=0.01), "no more than the backward"
    assert exchanged(4)["gradient-exchange"].seconds_per_step > found.seconds_per_step
    assert "gradient-exchange" not in exchanged(1), "nobody to exchange with"
    assert "gradient-exchange" not in exchanged(gradient_bytes=8_000)


def test_one_rank_validates() -> None:
    evaluate = ("train.py", 50, "evaluate", "model.eval()")

    def validated() -> TimelineBuilder:
        builder = TimelineBuilder()
        for _ in range(3):
            builder.steps(50, **COMPUTE).event("validation", 0.5, evaluate)
        return builder

    waits = rank().site("barrier", "barrier", BARRIER, 3, 1.5)
    found = causes(validated(), waits)["rank-0-validation"]
    assert found.where[0].line == 50 and found.evidence["wait_at"] == ["train.py:60"]
    assert found.seconds_per_step == pytest.approx(0.005, rel=0.05), "half of it, over two ranks"
    assert "rank-0-validation" not in causes(validated(), validated())
    assert "rank-0-validation" not in causes(validated())
    assert "rank-0-validation" not in causes(rank(), rank())


def test_sampler_that_is_never_told_the_epoch() -> None:
    line = ("train.py", 40, "main", "for x, y in loader:")

    def sampled(epochs: list[int], shuffle: bool = True) -> dict[str, Finding]:
        row = {"class": "DistributedSampler", "shuffle": shuffle, "epochs": epochs}
        return causes(rank().setting("sampler", line, **row), rank())

    found = sampled([0, 0, 0])["sampler-set-epoch"]
    assert found.where[0].line == 40 and "set_epoch" in found.advice
    for epochs, shuffle in (([0, 1, 2], True), ([0], True), ([0, 0], False)):
        assert "sampler-set-epoch" not in sampled(epochs, shuffle)


def test_every_rank_logs() -> None:
    line = ("train.py", 70, "main", "print(step, loss)")

    def logging(n: int) -> TimelineBuilder:
        return rank().site("logging", "print", line, n, 0.0001 * n)

    found = causes(logging(60), logging(60))["logging-every-rank"]
    assert found.where[0].line == 70 and found.evidence["calls_per_step"] == pytest.approx(1.0)
    assert "logging-every-rank" not in causes(logging(60), rank()), "rank 0 alone logs"
    assert "logging-every-rank" not in causes(logging(1), logging(1)), "a start-up message"
    assert "logging-every-rank" not in causes(logging(60))
