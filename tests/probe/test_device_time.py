"""Steps and phases on the device, by events: on a made-up device whose events hold the host's clock."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hotlap.probe import device_phases, device_time, graph_replays, step_rows, writer
from hotlap.probe.context import Context
from hotlap.probe.hook_points import HookPoints
from hotlap.probe.recorder import ALL_TIMED, H2D, Recorder
from hotlap.probe.undo import Undo
from hotlap.records.call import TRIAL_AHEAD, Call
from hotlap.records.rows import Event


class Device:
    """Says what ``torch.cuda`` says. Its events are done ``behind`` later records."""

    def __init__(self) -> None:
        self.now = 0
        self.records = 0
        self.behind = 3
        self.capturing = False
        self.used: int | None = None
        self.waits: list[int] = []
        """For each wait, how many records were made after the one that was waited for."""
        device = self

        class Mark:
            def __init__(self, enable_timing: bool, blocking: bool) -> None:
                assert enable_timing

            def record(self, stream: Any) -> None:
                assert stream == ("stream of", device.used)
                device.records += 1
                self.at, self.number = device.now, device.records

            def query(self) -> bool:
                return device.records - self.number >= device.behind

            def synchronize(self) -> None:
                device.waits.append(device.records - self.number)

            def elapsed_time(self, end: Any) -> float:
                assert self.query() and end.query(), "an event that is not done yet cannot be read"
                return (end.at - self.at) / 1e6

        self.Event = Mark

    def is_available(self) -> bool:
        return True

    is_initialized = is_available
    CUDAGraph = type("CUDAGraph", (), {name: lambda self: None for name in ("capture_begin", "capture_end", "replay")})

    def current_stream(self, index: int | None) -> Any:
        return "stream of", index

    def is_current_stream_capturing(self) -> bool:
        return self.capturing


class Script:
    """Steps of made-up length under the probe."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mode: str = "watch") -> None:
        self.device, self.undo, self.points = Device(), Undo(), HookPoints()
        self.rec = Recorder(lambda: self.device.now)
        self.rec.on_step_end = self.points.on_step_end
        self.failed: list[str] = []
        built = SimpleNamespace(cuda=SimpleNamespace(is_built=lambda: True))
        fake: Any = SimpleNamespace(nn=torch.nn, cuda=self.device, Tensor=torch.Tensor, compiler=torch.compiler,
                                    optim=torch.optim, backends=built)  # fmt: skip
        note = lambda what, why: self.failed.append(why)  # noqa: E731
        self.ctx = Context(Call("x", mode=mode), self.points, self.undo, self.rec, lambda name, call: None, note, fake)
        self.rec.on_failure = lambda err: self.failed.append(str(err))
        monkeypatch.setattr(device_phases, "FIRST", 2)
        monkeypatch.setattr(device_phases, "EVERY", 3)
        device_time.install(self.ctx)
        self.optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)

    def passes(self, ms: int) -> None:
        self.device.now += ms * 10**6

    def step(self, forward: int = 20, backward: int = 30) -> None:
        self.rec.sign_of_training()
        call: Any = lambda: self.passes(forward)  # noqa: E731
        for wrapper in self.points.around_forward:
            call = (lambda inner: lambda: wrapper(None, inner, (), {}))(call)  # noqa: B023
        call()
        self.passes(1)
        call = lambda: self.passes(backward)  # noqa: E731
        for wrapper in self.points.around_backward:
            call = (lambda inner: lambda: wrapper(inner, (), {}))(call)  # noqa: B023
        call()
        self.optimizer.step()
        self.passes(5)
        self.rec.end_step()

    def events(self) -> list[Event]:
        return [row for row in self.rec.rows if isinstance(row, Event)]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    found = Script(monkeypatch)
    yield found
    assert found.undo.undo_all() == []
    assert found.points.around_forward == [] == found.points.around_backward


def test_one_step_in_some_is_told_phase_by_phase(script: Script) -> None:
    for _ in range(12):
        script.step()
    told = script.events()  # step 11 was bracketed, too; the device is not there yet
    assert [(e.kind, e.i, e.w) for e in told] == [("device_step", i, 56 * 10**6) for i in (2, 5, 8)]
    assert all(e.d == {"forward": 20e6, "backward": 30e6, "optimizer": 0.0} for e in told)
    assert script.failed == []


def test_steps_watched_in_brief_are_not_bracketed(script: Script) -> None:
    script.rec.brief = True
    for _ in range(10):
        script.step()
    assert script.events() == [] and script.device.records == 10, "one event per step"


def test_nothing_is_recorded_while_a_graph_is_captured(script: Script) -> None:
    script.device.capturing = True
    for _ in range(5):
        script.step()
    assert script.device.records == 0 and script.events() == []


def test_a_device_that_refuses_is_noted_and_the_script_goes_on(script: Script) -> None:
    def refuse(mark: Any, stream: Any) -> None:
        raise RuntimeError("CUDA error")

    script.device.Event.record = refuse  # type: ignore[method-assign]
    for _ in range(5):
        script.step()
    assert script.rec.step_index == 5 and len(script.failed) == 1 and "CUDA error" in script.failed[0]


def test_what_stays_on_the_host_is_no_copy_to_the_device(script: Script) -> None:
    script.rec.sign_of_training()
    found = torch.ones(2).to(torch.float64)
    assert found.dtype == torch.float64 and script.rec.acc[H2D] == 0 and script.rec.calls[H2D] == 0
    assert script.rec.cur is None


def test_a_conversion_on_the_host_is_no_span_of_the_device(script: Script) -> None:
    for _ in range(12):  # the device is behind
        script.rec.sign_of_training()
        torch.ones(2).to(torch.float64)
        script.step()
    told = script.events()
    assert told and all(set(event.d) == {"forward", "backward", "optimizer"} for event in told)


def test_losses_of_a_device_are_read_with_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[int] = []
    together = step_rows._values

    def values(tensors: list[Any]) -> list[Any]:
        copies.append(len(tensors))
        return together(tensors)

    monkeypatch.setattr(step_rows, "_on_device", lambda value: isinstance(value, torch.Tensor))
    monkeypatch.setattr(step_rows, "_values", values)
    low = torch.tensor([0.125], dtype=torch.bfloat16)
    losses: list[list[Any]] = [[torch.tensor(0.5)], [0.75, torch.tensor([1.5])], [], [low]]
    steps: list[Any] = [(i, 0, 1, [0] * 12, 1, 1, 0, 0, kept, 1, 1, ALL_TIMED) for i, kept in enumerate(losses)]
    lines = [json.loads(line) for line in step_rows.StepRows().text(steps)]
    assert [line.get("l") for line in lines] == [[0.5], [0.75, 1.5], None, [0.125]] and sorted(copies) == [1, 2]


def test_a_loss_that_is_gone_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_rows, "_on_device", lambda value: isinstance(value, torch.Tensor))
    losses: list[list[Any]] = [[torch.tensor(0.5)], [torch.tensor([1.0, 2.0])]]
    steps: list[Any] = [(i, 0, 1, [0] * 12, 1, 1, 0, 0, kept, 1, 1, ALL_TIMED) for i, kept in enumerate(losses)]
    lines = [json.loads(line) for line in step_rows.StepRows().text(steps)]
    assert [line.get("l") for line in lines] == [[0.5], None], "null would say that it was no number"


def test_a_loss_that_the_device_never_came_to_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_rows, "_on_device", lambda value: isinstance(value, torch.Tensor))
    losses: list[list[Any]] = [[0.25, torch.tensor(0.5)], [float("nan")], [0.75], []]
    steps: list[Any] = [(i, 0, 1, [0] * 12, 1, 1, 0, 0, kept, 1, 1, ALL_TIMED) for i, kept in enumerate(losses)]
    step_rows.forget_losses(steps)
    lines = [json.loads(line) for line in step_rows.StepRows().text(steps)]
    assert [line.get("l") for line in lines] == [None, [None], [0.75], None]


def test_a_copy_that_still_goes_on_is_left_out(script: Script) -> None:
    steps = script.rec.on_step_end[-1].__self__  # type: ignore[attr-defined]
    first, begun, ended, last, copy, copied = (steps._record() for _ in range(6))
    script.device.behind = 2
    steps._read((1, 0, first, None), (2, 0, last, [("forward", begun, ended), ("h2d", copy, copied)]))
    assert script.events()[0].d == {"forward": 0.0} and copied not in steps._free and ended in steps._free


def test_a_watched_run_never_waits(script: Script) -> None:
    for _ in range(10):
        script.step()
    assert script.device.waits == []


def test_the_host_of_a_trial_is_two_steps_ahead_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Script(monkeypatch, "trial")
    trial.rec.brief = True  # no step is bracketed by more events
    waits = trial.device.waits
    for _ in range(6):
        trial.step()
    assert waits == [TRIAL_AHEAD] * 4
    assert trial.undo.undo_all() == []


def test_steps_that_the_device_has_not_ended_are_pending(script: Script) -> None:
    assert script.rec.pending() == 0
    for _ in range(8):
        script.step()
    pending = script.rec.pending()
    assert pending is not None and 0 < pending < 8
    script.device.behind = 0
    assert script.rec.pending() == 8, "nothing is known of what comes next"
    script.device.behind = 10**6  # nothing ends any more, and old events are dropped
    first = script.rec.pending()
    for _ in range(2 * device_time.POOL):
        script.step()
    assert first is not None and script.rec.pending() == first


def test_a_step_that_ends_while_it_is_asked_counts_as_pending(script: Script) -> None:
    script.device.behind = 0
    script.step()
    ask = script.device.Event.query
    begun: list[int] = []

    def query(mark: Any) -> bool:
        if not begun:  # the training thread comes between
            begun.append(0)
            script.step()
        return ask(mark)

    script.device.Event.query = query  # type: ignore[method-assign]
    assert script.rec.pending() == 1
    assert script.rec.pending() == 2


def test_after_an_error_of_the_device_steps_go_on_and_nobody_waits_for_it(script: Script) -> None:
    def broken(mark: Any) -> bool:
        raise RuntimeError("CUDA error: device-side assert triggered")

    script.step()
    script.device.Event.query = broken  # type: ignore[method-assign]
    for _ in range(3):
        script.step()
    assert script.rec.pending() is None and script.rec.step_index == 4
    assert len(script.failed) == 1 and "device-side assert" in script.failed[0]


def test_rows_that_come_while_rows_are_written_wait_for_the_next_time(tmp_path: Any) -> None:
    rec = Recorder()
    rec.started = True
    rec.pending = lambda: len(rec.steps)

    def step(now: int = 0) -> None:
        rec.losses = [0.5]
        rec.add_row(len(rec.steps), 0, 1, 1, 1, ALL_TIMED)

    step()
    file = writer.Writer(rec, str(tmp_path / "1.jsonl"), 1.0, lambda: Event("header", 0, 0, 0), before_flush=[step])
    file.flush()
    assert [row[0] for row in rec.steps] == [1]


def test_the_writer_leaves_what_is_pending_and_gives_it_up_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(step_rows, "_on_device", lambda value: isinstance(value, torch.Tensor))
    monkeypatch.setattr(writer, "LAST_WAIT_S", 0.05)
    rec = Recorder()
    rec.started = True
    pending: list[int | None] = [3]
    rec.pending = lambda: pending[0]
    file = writer.Writer(rec, str(tmp_path / "1.jsonl"), 1.0, lambda: Event("header", 0, 0, 0))
    for i in range(5):
        rec.losses = [torch.tensor(float(i))]
        rec.add_row(i, 0, 1, 1, 1, ALL_TIMED)

    def lines() -> list[Any]:
        rows = [json.loads(line) for line in (tmp_path / "1.jsonl").read_text().splitlines()]
        return [(row["i"], row.get("l")) for row in rows if row["k"] == "step"]

    file.flush()
    assert lines() == [(0, [0.0]), (1, [1.0]), (2, [2.0])]
    file.close(Event("end", 0, 0, 0))
    assert lines()[3:] == [(3, None), (4, None)]


def test_without_cuda_nobody_asks_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    built = SimpleNamespace(cuda=SimpleNamespace(is_built=lambda: True))
    cuda = SimpleNamespace(is_initialized=lambda: False, is_available=lambda: asked.append("driver"),
                           CUDAGraph=Device.CUDAGraph)  # fmt: skip
    undo = Undo()
    fake: Any = SimpleNamespace(nn=torch.nn, cuda=cuda, Tensor=torch.Tensor, compiler=torch.compiler, optim=torch.optim,
                                backends=built)  # fmt: skip
    rec = Recorder()
    context = Context(Call("x"), HookPoints(), undo, rec, lambda name, call: None, lambda what, why: None, fake)
    device_time.install(context)
    rec.sign_of_training()
    assert torch.ones(2).to(torch.float64).dtype == torch.float64
    assert rec.pending() is None and asked == [] and undo.undo_all() == []


def test_a_capture_that_fails_to_begin_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(graph: Any) -> None:
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

    monkeypatch.setattr(Device.CUDAGraph, "capture_begin", refuse)
    script = Script(monkeypatch)
    script.device.behind = 0
    script.step()
    with pytest.raises(RuntimeError, match="not permitted"):
        script.device.CUDAGraph().capture_begin()
    assert script.rec.pending() == 1 and script.undo.undo_all() == []


def test_the_replay_of_a_whole_captured_step_is_a_step_and_of_a_part_is_none(script: Script) -> None:
    whole, part = script.device.CUDAGraph(), script.device.CUDAGraph()
    script.step()
    script.device.capturing = True
    whole.capture_begin()
    script.step()
    assert script.rec.pending() == 0, "nothing is asked of the device while it is captured"
    whole.capture_end()
    part.capture_begin()
    part.capture_end()
    script.device.capturing = False
    for _ in range(3):
        part.replay()
        script.passes(7)
        whole.replay()
    assert script.rec.step_index == 5 and [row[2] for row in script.rec.steps[-3:]] == [7 * 10**6] * 3
    assert script.rec.pending() != 0


def test_a_capture_waits_for_a_thread_that_is_asking_the_device_and_not_for_ever(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.device.behind = 0
    script.step()
    begun = threading.Event()
    graph = script.device.CUDAGraph()

    def begin() -> None:
        graph.capture_begin()
        begun.set()

    with script.rec.asking:
        waiting = threading.Thread(target=begin)
        waiting.start()
        assert not begun.wait(0.2) and script.rec.pending() == 1, "what is being asked may be asked to the end"
    waiting.join()
    assert begun.is_set() and script.rec.pending() == 0
    graph.capture_end()

    monkeypatch.setattr(graph_replays, "LONGEST_WAIT_S", 0.05)
    with script.rec.asking:
        graph.capture_begin()
    assert script.rec.pending() == 0
    graph.capture_end()


def test_the_writer_asks_with_the_lock_and_a_forked_child_has_one_of_its_own(script: Script, tmp_path: Path) -> None:
    held: list[bool] = []
    script.step()
    tidy = [lambda now: held.append(script.rec.asking.locked())]
    file = writer.Writer(script.rec, str(tmp_path / "1.jsonl"), 60, lambda: Event("header", 0, 0, 0), before_flush=tidy)
    file.flush()
    assert held == [True] and not script.rec.asking.locked()
    with script.rec.asking:
        script.rec.restart_in_child()
        assert not script.rec.asking.locked()
