"""Causes on the host's side: the collector, forced and heavy logging, syncs, each beside a near miss."""

from __future__ import annotations

import pytest
from diagnose_scripts import COMPUTE, causes, healthy, judge

from hotlap.testing.timelines import TimelineBuilder

GPU = "NVIDIA H200"


def test_gc_collect_names_its_line_and_leaves_the_rest_to_gc() -> None:
    line = ("train.py", 70, "main", "gc.collect()")
    other = ("train.py", 64, "main", "rows = [dict(r) for r in rows]")

    def collected(by_hand: float, total: float) -> TimelineBuilder:
        builder = TimelineBuilder().steps(60, gc=total, **COMPUTE)
        builder.site("gc", "full", other, 6, (total - by_hand) * 60)
        return builder.site("gc", "collect", line, 60, by_hand * 60) if by_hand else builder

    found = causes(collected(0.010, 0.010))
    assert found["gc-collect"].where[0].line == 70 and "gc" not in found
    assert found["gc-collect"].seconds_per_step == pytest.approx(0.010, rel=0.05)
    both = causes(collected(0.004, 0.010))
    assert both["gc"].seconds_per_step == pytest.approx(0.006, rel=0.05) and both["gc"].where[0].line == 64
    assert both["gc"].evidence["full_each_s"] == pytest.approx(0.06, rel=0.05)
    alone = causes(collected(0.0, 0.010))
    assert "gc-collect" not in alone and "gc" in alone
    assert not {"gc", "gc-collect"} & set(causes(collected(0.0002, 0.0002)))


def test_empty_cache_on_a_device_only() -> None:
    line = ("train.py", 71, "main", "torch.cuda.empty_cache()")
    for device, seconds, expected in ((GPU, 0.3, True), (GPU, 0.002, False), ("cpu", 0.3, False)):
        builder = TimelineBuilder(device).steps(60, residual=0.005, **COMPUTE)
        found = causes(builder.site("memory", "empty_cache", line, 60, seconds))
        assert ("empty-cache" in found) is expected
    assert "logging-blocking" not in found, "a timed call of another kind is no logging"


def logged(*sites: tuple[str, str, float]) -> TimelineBuilder:
    builder = TimelineBuilder().steps(60, logging=sum(s for _, _, s in sites), **COMPUTE)
    for i, (op, text, seconds) in enumerate(sites):
        builder.site("logging", op, ("train.py", 100 + i, "main", text), 60, seconds * 60)
    return builder


def test_logging_is_told_apart() -> None:
    found = causes(
        logged(
            ("fsync", "os.fsync(log.fileno())", 0.006),
            ("SummaryWriter.add_histogram", "writer.add_histogram(name, p)", 0.004),
            ("print", "print(step, loss)", 0.002),
        )
    )
    assert found["logging-forced"].where[0].line == 100 and "fsync" in found["logging-forced"].detail
    assert found["logging-forced"].seconds_per_step == pytest.approx(0.006, rel=0.05)
    assert found["logging-histogram"].where[0].line == 101
    assert found["logging-histogram"].evidence["each_s"] == pytest.approx(0.004, rel=0.05)
    assert found["logging-blocking"].seconds_per_step == pytest.approx(0.002, rel=0.05)
    assert set(causes(logged(("print", "print(step, loss)", 0.002)))) == {"logging-blocking"}
    assert set(causes(logged(("print", "print(step, loss, flush=True)", 0.002)))) == {"logging-forced"}


@pytest.mark.parametrize(
    "text",
    ["log.flush()", "with open('log.csv', 'a') as log:", "os.fsync(fd)",
     'log = open(path, "w", buffering=1)'],
)  # fmt: skip
def test_forced_writes_in_the_residual(text: str) -> None:
    line = ("train.py", 120, "main", text)
    builder = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, line)
    found = causes(builder)
    assert found["logging-forced"].where[0].line == 120 and "logging-blocking" not in found


def test_work_in_the_arguments_of_a_forced_print_is_no_logging() -> None:
    printed = ("train.py", 70, "run", 'print(f"step {step} EER {self.equal_error():.3f}", flush=True)')
    inside = ("train.py", 55, "equal_error", "order = scores.argsort(descending=True)")
    found = causes(healthy(residual=0.004).stack("residual", 40, printed, inside))
    assert found["host-work"].where[0].line == 55
    assert not {"logging-forced", "logging-blocking"} & set(found)


def test_reading_a_file_is_no_forced_write() -> None:
    line = ("train.py", 120, "main", "text = open('notes.txt', 'r').read()")
    builder = TimelineBuilder().steps(60, residual=0.01, **COMPUTE).stack("residual", 50, line)
    assert not {"logging-forced", "logging-blocking"} & set(causes(builder))


@pytest.mark.parametrize(
    ("op", "text", "words"),
    [
        ("item", "bar.set_postfix(loss=loss.item())", "progress bar"),
        ("item", "total += loss.item()", ".item()"),
        ("bool", "if loss < best:", "condition"),
        ("cpu", "predictions.append(out.cpu())", ".cpu()"),
        ("numpy", "scores = out.detach().numpy()", ".numpy()"),
        ("tolist", "names = ids.tolist()", ".tolist()"),
        ("synchronize", "torch.cuda.synchronize()", "synchronize"),
    ],
)
def test_sync_says_what_waits(op: str, text: str, words: str) -> None:
    line = ("train.py", 101, "main", text)
    sync = causes(TimelineBuilder(GPU).steps(60, sync=0.01, **COMPUTE).site("sync", op, line, 60, 0.6))["sync"]
    assert words in sync.detail and sync.where[0].line == 101


def test_syncs_on_a_cpu_are_a_note() -> None:
    line = ("train.py", 101, "main", "total += loss.item()")
    notes = judge(healthy().site("sync", "item", line, 240, 0.0001)).notes
    assert any("train.py:101" in n and "free here, on a GPU" in n for n in notes)
    assert not any("free here" in n for n in judge(healthy().site("sync", "item", line, 4, 0.0001)).notes)
