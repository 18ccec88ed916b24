"""What grows while a run goes on, or was left on: metrics over a history, kept graphs, profilers."""

from __future__ import annotations

import pytest
from diagnose_scripts import COMPUTE, causes, healthy

from hotlap.testing.timelines import TimelineBuilder, UserLine

LOOP = ("train.py", 90, "main", "optimizer.step()")


def growing(phase: str, text: str, factor: float = 1.0) -> TimelineBuilder:
    builder = TimelineBuilder()
    line = ("train.py", 110, "main", text)
    base = COMPUTE.get(phase, 0.004)
    for i in range(100):
        seconds = {**COMPUTE, phase: base * (1 + factor * i / 25)}
        builder.steps(1, **seconds).stack(phase, 1 + i // 10, line)
    return builder


@pytest.mark.parametrize(
    "text", ["mean = np.mean(losses)", "f1 = f1_score(all_true, all_pred)", "torch.stack(seen).mean().item()"]
)
def test_metrics_over_a_history(text: str) -> None:
    found = causes(growing("residual", text))
    assert found["metrics-history"].where[0].line == 110
    assert "growing-step" not in found, "a growth is told once"
    assert not {"metrics-history", "growing-step"} & set(causes(growing("residual", text, factor=0.0)))


def test_a_function_over_a_history_is_told_once() -> None:
    """Most of each step from early on, so that its part of a second hardly grows; its first line is no metric's."""
    order = ("train.py", 20, "auc", "order = argsort(scores)")
    mean = ("train.py", 21, "auc", "positive = labels.sum()")
    other = ("train.py", 112, "main", "table = describe(batch)")
    builder = TimelineBuilder()
    for i in range(100):
        builder.steps(1, **{**COMPUTE, "residual": 0.004 * (1 + i)})
        builder.stack("residual", 6 * (1 + i), order).stack("residual", 3 * (1 + i), mean)
        builder.stack("residual", 1, other)
    found = causes(builder)
    assert next(iter(found)) == "metrics-history" and [w.line for w in found["metrics-history"].where] == [20, 21]
    assert "host-work" not in found, "the rest is too little"
    for _ in range(3000):
        builder.stack("residual", 1, other)
    assert [w.line for w in causes(builder)["host-work"].where] == [112]


def test_other_growth_is_no_metric() -> None:
    found = causes(growing("residual", "graph = rebuild(graph, node)"))
    assert "metrics-history" not in found and found["growing-step"].where[0].line == 110
    assert "metrics-history" not in causes(growing("backward", "loss = torch.stack(losses).sum()"))


def looked_at(kind: str, lengths: list[int], line: int | None = None) -> TimelineBuilder:
    builder = healthy()
    for step, length in zip((6, 20, 100), lengths, strict=True):
        builder.setting("retained", LOOP, step=step, found=[["losses", kind, length]])
    timeline = builder.build()
    if line is not None:
        timeline.kept["train.py:losses"] = line
        timeline.source[f"train.py:{line}"] = "losses.append(loss)"
    return builder


@pytest.mark.parametrize("kind", ["graph", "sum"])
def test_a_leak_names_the_line_that_adds(kind: str) -> None:
    leak = causes(looked_at(kind, [7, 21, 101], line=93))["memory-leak"]
    assert leak.where[0].line == 93 and "losses.append" in leak.where[0].text
    assert leak.evidence["kept_per_step"] == pytest.approx(1.0) and leak.share == 0.0
    assert "detach" in leak.advice


def test_what_is_no_leak() -> None:
    assert causes(looked_at("graph", [7, 21, 101]))["memory-leak"].where[0].line == 90, "the frame where it was seen"
    for kind, lengths in (
        ("graph", [16, 16, 16]),
        ("graph", [40, 12, 101]),
        ("graph", [7, 8, 12]),
        ("tensor", [7, 21, 101]),
    ):
        assert "memory-leak" not in causes(looked_at(kind, lengths)), (kind, lengths)


def test_a_retained_graph_is_blamed_on_the_line_that_keeps_it() -> None:
    builder = growing("backward", "loss.backward()")
    for step, length in ((6, 7), (20, 21)):
        builder.setting("retained", LOOP, step=step, found=[["hidden", "graph", length]])
    builder.build().kept["train.py:hidden"] = 95
    assert causes(builder)["growing-step"].where[0].line == 95


def test_profilers_of_the_interpreter() -> None:
    off = {"profile": "", "trace": "", "tracemalloc": False, "monitoring": ""}

    def busy() -> TimelineBuilder:
        return TimelineBuilder().steps(60, residual=0.01, **COMPUTE)

    found = causes(busy().setting("tracing", **{**off, "profile": "cProfile.Profile"}))["profiler-left-on"]
    assert "cProfile.Profile" in found.detail and found.evidence["basis"] == "prior"
    assert "profiler-left-on" not in causes(
        busy().setting("tracing", **{**off, "trace": "pdb.Pdb"}).setting("tracing", **off)
    ), "it was switched off again"
    line = ("train.py", 3, "main", "tracemalloc.start()")
    traced = busy().setting("tracing", line, **{**off, "tracemalloc": True})
    assert causes(traced)["profiler-left-on"].where[0].line == 3


def test_growth_by_copies_is_told_as_what_it_is() -> None:
    text = "self.bank = torch.cat([self.bank, new])"
    unknown = causes(growing("residual", text))
    assert "growing-step" in unknown and "metrics-history" not in unknown, "a tensor that grows is no history"
    beside = growing("residual", text)
    beside.stack("residual", 5, ("train.py", 99, "main", "far = (one @ self.bank.t()).mean()"))
    assert "metrics-history" not in causes(beside), "what reads it grows less"
    for history in ("auc = roc(torch.cat([s for s in self.seen]))", "all = torch.cat(self.seen)"):
        assert "metrics-history" in causes(growing("residual", history))
    line: UserLine = ("train.py", 110, "main", text)
    found = causes(growing("residual", text).shape("repeated-cat", line, 110, detail="self.bank"))
    assert next(iter(found)) == "repeated-cat" and not {"metrics-history", "growing-step", "host-work"} & set(found)
    elsewhere: UserLine = ("train.py", 99, "train", text)
    other = causes(growing("residual", text).shape("repeated-cat", elsewhere, 99, detail="self.bank"))
    assert "growing-step" in other, "another line grows"
    jump = TimelineBuilder()
    for residual, samples in ((0.004, 4), (0.03, 30)):
        for _ in range(60):
            jump.steps(1, **{**COMPUTE, "residual": residual}).stack("residual", samples, line)
    assert "drift" in causes(jump)
    told = causes(jump.shape("repeated-cat", line, 110, detail="self.bank"))
    assert "drift" not in told and told["repeated-cat"].where[0].line == 110, "noise makes a jump of a growth"


def test_a_log_of_what_is_computed_over_a_history() -> None:
    found = causes(growing("residual", 'writer.add_scalar("auc", auc(scores, truth), step)'))
    assert next(iter(found)) == "metrics-history" and "logging-blocking" not in found
    steady = causes(growing("residual", 'writer.add_scalar("auc", auc(scores, truth), step)', factor=0.0))
    assert "logging-blocking" in steady


def test_a_leak_is_told_before_what_costs_little() -> None:
    assert next(iter(causes(looked_at("graph", [7, 21, 101], line=93)))) == "memory-leak"
