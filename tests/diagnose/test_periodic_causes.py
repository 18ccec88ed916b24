"""Periodic work in numbers: what it costs at its cadence, and what a validation spends its time on."""

from __future__ import annotations

import pytest
from diagnose_scripts import COMPUTE, FETCH, LOADER, causes

from hotlap.testing.timelines import TimelineBuilder, UserLine

EVALUATE: UserLine = ("train.py", 131, "evaluate", "model.eval()")
MODULE: UserLine = ("/v/site-packages/torch/nn/modules/module.py", 1, "_call_impl", "")
SCORE: UserLine = ("train.py", 140, "evaluate", "auc = roc_auc_score(truth, scores.cpu())")
SKLEARN: UserLine = ("/v/site-packages/sklearn/metrics/_ranking.py", 580, "roc_auc_score", "")


def periodic(kind: str, seconds: float, device: str = "cpu") -> TimelineBuilder:
    builder = TimelineBuilder(device)
    for _ in range(3):
        builder.steps(50, **COMPUTE).event(kind, seconds, EVALUATE)
    return builder


@pytest.mark.parametrize(
    ("kind", "cause"), [("validation", "validation-cadence"), ("checkpoint", "checkpoint-blocking")]
)
def test_cadence_in_numbers(kind: str, cause: str) -> None:
    found = causes(periodic(kind, 0.5))[cause]
    assert found.evidence["wall_frac"] == pytest.approx(0.5 / (0.5 + 50 * 0.0205), rel=0.02)
    every = found.evidence["steps_for_a_hundredth"]
    assert every * 0.0205 * 0.01 == pytest.approx(0.5 * 0.99, rel=0.02)
    assert f"every {every} steps it would take a hundredth" in found.advice


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((EVALUATE, SCORE, SKLEARN), "train.py:140"),
        ((EVALUATE, FETCH), "Most of it loads samples, with 0 workers"),
        ((EVALUATE, MODULE), "batches larger than 16 fit"),
    ],
)
def test_what_a_validation_does(lines: tuple[UserLine, ...], words: str) -> None:
    builder = periodic("validation", 0.5, "NVIDIA H200").stack("validation", 30, *lines).loader(LOADER)
    builder.setting("loader", LOADER, id=2, training=False, batch_size=16, num_workers=0, dataset_len=100)
    assert words in causes(builder)["validation-cadence"].advice


def test_larger_batches_are_no_advice_on_a_cpu() -> None:
    builder = periodic("validation", 0.5).stack("validation", 30, EVALUATE, MODULE).loader(LOADER)
    builder.setting("loader", LOADER, id=2, training=False, batch_size=16, num_workers=0, dataset_len=100)
    assert "batches larger" not in causes(builder)["validation-cadence"].advice


def test_the_line_that_told_a_framework_how_often_comes_first() -> None:
    builder = TimelineBuilder().steps(20, **COMPUTE)
    fit: UserLine = ("train.py", 61, "main", "trainer.fit(model)")
    for _ in range(5):
        builder.event("validation", 0.3, fit).steps(20, **COMPUTE)
    assert causes(builder)["validation-cadence"].where[0].line == 61
    told: UserLine = ("train.py", 53, "main", "val_check_interval=20,")
    found = causes(builder.shape("validation-cadence", told, 53))["validation-cadence"]
    assert [w.line for w in found.where] == [53, 61] and "train.py:53" in found.advice


def test_the_call_in_the_loop_is_named_before_what_it_runs() -> None:
    step: UserLine = ("train.py", 88, "main", "loss.backward()")
    call: UserLine = ("train.py", 95, "main", "evaluate(model, loader)")
    inside: UserLine = ("train.py", 130, "evaluate", "model.eval()")
    builder = TimelineBuilder()
    for _ in range(3):
        builder.steps(50, **COMPUTE).event("validation", 0.5, call, inside)
    builder.stack("backward", 50, step)
    assert [w.line for w in causes(builder)["validation-cadence"].where] == [95, 130]
