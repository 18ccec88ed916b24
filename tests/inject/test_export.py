"""Figures in the tracker that the script uses: read back by the tracker's own reader, where it is installed."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotlap.guard.export import Export
from hotlap.guard.status import Status
from hotlap.inject import export
from hotlap.inject.door import environment
from hotlap.inject.export import Exporter
from hotlap.probe.undo import Undo
from hotlap.records.call import Call
from hotlap.records.codec import dumps
from hotlap.records.figures import NAME, Figures
from hotlap.records.rows import Mark
from hotlap.records.timeline import training_timeline

FIGURES = Figures(os.getpid(), 40, {"hotlap/samples_per_s": 160.0, "hotlap/phase_frac/forward": 0.5})
SLOWER = replace(FIGURES, step=80, drifts=["steps got slower from step 60 on"])


class Told:
    """Keeps the marks."""

    def __init__(self) -> None:
        self.marks: list[tuple[str, str, str, int, str]] = []

    def set_mark(self, kind: str, id: str, state: str, count: int, why: str = "") -> None:
        self.marks.append((kind, id, state, count, why))


class Ours:
    """The export, and the file that the guard would write."""

    def __init__(self, folder: Path) -> None:
        self.undo = Undo()
        self.exporter = Exporter(str(folder), self.undo)
        self.exporter.timeline = self.told = Told()
        self._path = folder / NAME

    def give(self, figures: Figures) -> None:
        self._path.write_text(dumps(figures))
        os.utime(self._path, ns=(0, figures.step))
        self.exporter.look()

    def states(self) -> list[tuple[str, str, int]]:
        return [(id, state, count) for _, id, state, count, _ in self.told.marks]


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Ours]:
    (tmp_path / "timelines").mkdir()
    found = Ours(tmp_path / "timelines")
    yield found
    found.exporter.stop()
    assert found.undo.undo_all() == []


def scalars(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (file,) = folder.iterdir()
    read = EventAccumulator(str(file))
    read.Reload()
    return read


def test_tensorboard(ours: Ours, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    writer, other = SummaryWriter(str(tmp_path / "a")), SummaryWriter(str(tmp_path / "b"))
    writer.add_scalar("loss", 1.0, 7)
    ours.give(FIGURES)
    ours.give(SLOWER)
    ours.give(replace(SLOWER, step=120))
    writer.close()
    ours.give(replace(FIGURES, step=160))
    other.close()
    ours.give(replace(FIGURES, step=200))
    read = scalars(tmp_path / "a")
    assert [(e.step, e.value) for e in read.Scalars("hotlap/samples_per_s")] == [(40, 160.0), (80, 160.0), (120, 160.0)]
    assert [e.step for e in read.Scalars("loss")] == [7]
    (told,) = read.Tensors("hotlap/drift_told/text_summary")
    assert told.step == 80 and told.tensor_proto.string_val == [SLOWER.drifts[0].encode()]
    assert [e.step for e in scalars(tmp_path / "b").Scalars("hotlap/phase_frac/forward")] == [160], "the next open one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "timelines"], "no file but the script's"
    assert ours.states() == [("TensorBoard", "applied", 1)]


def test_tensorboard_that_wandb_copies_is_left_alone(
    ours: Ours, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    from types import SimpleNamespace

    from torch.utils.tensorboard import SummaryWriter

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(patched={"tensorboard": [["module", "name"]]}))
    with SummaryWriter(str(tmp_path / "a")) as writer:
        ours.give(FIGURES)
        writer.add_scalar("loss", 1.0, 7)
    assert scalars(tmp_path / "a").Tags()["scalars"] == ["loss"]


def log_records(data: bytes) -> Iterator[bytes]:
    """Records of a LevelDB log (blocks of 32 KiB; checksum, length and kind before each part), behind W&B's 7 bytes."""
    at, parts = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        if at + 7 + length > len(data):  # it is still being written
            return
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


def wandb_rows(folder: Path) -> list[dict[str, Any]]:
    """History rows of an offline run, once its end is written: by W&B's own process, late on a busy machine."""
    from wandb.proto import wandb_internal_pb2

    end = time.monotonic() + 30.0
    while True:
        records = []
        for path in folder.glob("wandb/offline-run-*/run-*.wandb"):
            for data in log_records(path.read_bytes()):
                records.append(wandb_internal_pb2.Record())
                records[-1].ParseFromString(data)
        kinds = [record.WhichOneof("record_type") for record in records]
        if "exit" in kinds or time.monotonic() > end:
            break
        time.sleep(0.1)
    rows = [record.history.item for record, kind in zip(records, kinds, strict=True) if kind == "history"]
    return [{i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in row} for row in rows]


def test_wandb_rides_in_rows_of_the_script(ours: Ours, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wandb = pytest.importorskip("wandb")
    settings = wandb.Settings(silent=True, console="off")
    run = wandb.init(mode="offline", dir=tmp_path, settings=settings)
    ours.give(FIGURES)
    run.log(theirs := {"loss": 1.0})
    run.log({"loss": 0.5})
    ours.give(replace(SLOWER, step=60))
    ours.give(SLOWER)
    run.log(data={"loss": 0.25}, step=9)
    assert theirs == {"loss": 1.0} and run.step == 9
    ours.give(replace(SLOWER, step=120))
    run.finish()
    rows = [{k: v for k, v in row.items() if k in ("_step", "loss") or "hotlap" in k} for row in wandb_rows(tmp_path)]
    told = {"hotlap/drift_told": SLOWER.drifts[0]}
    assert rows == [
        {"_step": 0, "loss": 1.0, **FIGURES.values},
        {"_step": 1, "loss": 0.5},
        {"_step": 9, "loss": 0.25, **SLOWER.values, **told},
    ], "what came after the script's last row has moved no step"
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow as a script has it when Hotlap begins, whatever tests of this process came before.

    ``mlflow.start_run`` is bound when the package is imported, and watched where that is after the exporter's start.
    """
    for name in [name for name in sys.modules if name.split(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)


def test_mlflow_takes_them_for_the_active_run(
    not_imported: None, ours: Ours, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())  # set_tracking_uri would outlive the test
    ours.give(replace(FIGURES, step=1))
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", 1.0, step=3)
        ours.give(FIGURES)
        with mlflow.start_run(nested=True) as inner:
            ours.give(replace(FIGURES, step=60))
        ours.give(SLOWER)
    ours.give(replace(SLOWER, step=120))
    client = mlflow.MlflowClient()
    points = {
        r.info.run_id: [p.step for p in client.get_metric_history(r.info.run_id, "hotlap/samples_per_s")]
        for r in client.search_runs(["0"])
    }
    assert points == {run.info.run_id: [40, 80], inner.info.run_id: [60]}
    done = client.get_run(run.info.run_id)
    assert done.data.tags["hotlap.drift_told"] == SLOWER.drifts[0] and done.info.status == "FINISHED"
    assert done.data.metrics == {"loss": 1.0, **FIGURES.values}


class Refuses:
    """A tracker whose server is gone."""

    name, given = "Gone", 3

    def give(self, figures: Figures) -> None:
        raise ConnectionError("no route")


class Takes:
    name, given = "Here", 0

    def give(self, figures: Figures) -> None:
        self.given += 1


def test_a_tracker_that_refuses_is_left_alone_and_told(ours: Ours) -> None:
    takes = Takes()
    ours.exporter._trackers[:] = [Refuses(), takes]
    for step in (40, 41, 41):
        ours.give(replace(FIGURES, step=step))
    ours.give(replace(FIGURES, pid=1, step=42))
    assert takes.given == 2, "what was there already, or is another process' affair, is not given"
    ours.exporter.stop()
    assert ours.told.marks[0] == ("export", "Gone", "failed", 3, "ConnectionError: no route")
    assert ours.states()[1:] == [("Here", "applied", 1), ("Here", "applied", 2)]


def test_a_thread_carries_them_over(ours: Ours, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "LOOK_S", 0.01)
    ours.exporter._trackers[:] = [takes := Takes()]
    ours.exporter.wake()
    ours.exporter.wake()
    (ours.exporter._path).write_text(dumps(FIGURES))
    until = time.monotonic() + 10
    while not takes.given and time.monotonic() < until:
        time.sleep(0.01)
    thread = ours.exporter._thread
    assert thread in threading.enumerate() and thread is not None
    thread.join()  # as a script that joins all threads does at its end, before Hotlap's own
    assert thread.is_alive()
    ours.exporter.stop()
    assert takes.given == 1 and thread is not None and not thread.is_alive()


def test_figures_that_cannot_be_read_end_the_export(ours: Ours) -> None:
    ours.exporter._trackers[:] = [takes := Takes()]
    ours.exporter._path.write_text('{"pid": 1}')
    ours.exporter.look()
    assert takes.given == 0 and ours.states() == [(NAME, "failed", 0)]


def test_what_the_guard_hands_over(tmp_path: Path) -> None:
    now = [0.0]
    out = Export(tmp_path, lambda: now[0])
    out.write(Status(), 1, [])
    assert not (tmp_path / NAME).exists(), "nothing is known before the first step"
    status = Status(steps=7, step_s=0.5, phases={"forward": 0.25, "data_wait": 0.1}, rss_bytes=10)
    out.write(status, 5, ["slower"])
    now[0] = 9.0
    out.write(replace(status, steps=8), 5, [])
    found = json.loads((tmp_path / NAME).read_text())
    assert (found["pid"], found["step"], found["drifts"]) == (5, 7, ["slower"]), "one in ten seconds"
    assert found["values"] == {
        "hotlap/step_s": 0.5, "hotlap/data_wait_s": 0.1, "hotlap/memory_bytes/script": 10.0, "hotlap/drift": 0.0,
        "hotlap/drifts": 0.0, "hotlap/phase_frac/forward": 0.5, "hotlap/phase_frac/data_wait": 0.2,
    }  # fmt: skip
    (tmp_path / NAME).unlink()
    now[0] = 30.0
    out.write(status, 5, [])
    assert not (tmp_path / NAME).exists(), "no step since"
    out.write(replace(status, steps=8), 5, [])
    assert (tmp_path / NAME).exists()


SCRIPT = """
import os, time, torch
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter("tb")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
until = time.monotonic() + 20
for step in range(10**9):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    writer.flush()
    if b"hotlap/step_s" in open(os.path.join("tb", os.listdir("tb")[0]), "rb").read() or time.monotonic() > until:
        break
    time.sleep(0.02)
"""


def test_in_the_scripts_own_process(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "train.py").write_text(SCRIPT)
    timelines = tmp_path / "timelines"
    timelines.mkdir()
    call = Call(timeline_dir=str(timelines), mode="run", export=True)
    with subprocess.Popen([sys.executable, "train.py"], cwd=tmp_path, env=environment(call)) as script:
        (timelines / NAME).write_text(dumps(Figures(script.pid, 40, {"hotlap/step_s": 0.5})))
        assert script.wait(60) == 0
    assert scalars(tmp_path / "tb").Scalars("hotlap/step_s")[0].value == 0.5
    timeline = training_timeline(timelines)
    assert timeline is not None and timeline.mark == [Mark("export", "TensorBoard", "applied", 1)]
