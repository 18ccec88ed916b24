"""Trackers write runs that their own readers read; without the library, the error says what to install."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from toy import Toy, losses, trainer

from hotlap_workloads.engine import trackers
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError, WorkloadError

SMALL = EngineSettings(epochs=1, batch_size=8, print_every_steps=2, track_every_steps=2)


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trainer(tmp_path, replace(SMALL, trackers=("tensorboard",))).run()
    read = EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    assert [event.step for event in read.Scalars("loss")] == [2, 4, 6]
    assert [event.step for event in read.Scalars("light")] == [6]


def test_wandb_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    trainer(tmp_path, replace(SMALL, trackers=("wandb",), track_model=True)).run()
    (run,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    until = time.monotonic() + 30  # a process of W&B's own writes it, and is late on a busy machine
    while b"loss" not in run.read_bytes() and time.monotonic() < until:
        time.sleep(0.1)
    assert b"loss" in run.read_bytes()


def test_mlflow_file_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    from mlflow.tracking import MlflowClient

    trainer(tmp_path, replace(SMALL, trackers=("mlflow",), track_model=True)).run()
    client = MlflowClient((tmp_path / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("hotlap_workloads")
    (run,) = client.search_runs([experiment.experiment_id])
    assert [point.step for point in client.get_metric_history(run.info.run_id, "loss")] == [2, 4, 6]
    assert run.data.params["batch_size"] == "8" and run.info.status == "FINISHED"
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["checkpoint.pt"]


def killed_and_gone_on_with(out: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed at its fifth step, two points after its checkpoint, and goes on; and one that is done."""
    settings = replace(SMALL, trackers=(name,), epochs=2, track_every_steps=1, checkpoint_every_epochs=0.5)  # type: ignore[arg-type]
    plain = Toy.evaluate

    def killed(self: Toy, heavy: bool) -> dict[str, float]:
        if made.position.step == 5:
            raise KeyboardInterrupt
        return plain(self, heavy)

    made = trainer(out, replace(settings, evaluate_every_epochs=5 / 6))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Toy, "evaluate", killed)
        made.run()
    with open(out / "metrics.jsonl", "a") as file:
        file.write('{"step": 5, "lo')  # a line that was cut short
    for steps in (8, 12):
        trainer(out, replace(settings, max_steps=steps, evaluate_every_epochs=0)).run()
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == [2, 4, 6, 8, 10, 12]


def test_a_run_that_goes_on_has_every_point_once_in_tensorboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.summary.writer import event_file_writer

    # Files of one second are read in the order of their names, where this process' tenth comes before its ninth.
    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(0))
    killed_and_gone_on_with(tmp_path, "tensorboard", monkeypatch)
    read = EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    assert [event.step for event in read.Scalars("loss")] == list(range(1, 13))


def test_a_run_that_goes_on_is_one_run_of_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that begins anew in the same folder is another."""
    pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    from mlflow.tracking import MlflowClient

    killed_and_gone_on_with(tmp_path, "mlflow", monkeypatch)
    client = MlflowClient((tmp_path / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("hotlap_workloads").experiment_id
    (run,) = client.search_runs([experiment])
    assert [point.step for point in client.get_metric_history(run.info.run_id, "loss")] == list(range(1, 13))
    assert run.info.status == "FINISHED"
    for file in tmp_path.glob("checkpoint*"):
        file.unlink()
    trainer(tmp_path, replace(SMALL, trackers=("mlflow",))).run()
    assert len(client.search_runs([experiment])) == 2
    for found in client.search_runs([experiment]):
        client.delete_run(found.info.run_id)
    trainer(tmp_path, replace(SMALL, epochs=2, trackers=("mlflow",))).run()
    assert len(client.search_runs([experiment])) == 1, "one that is gone is not gone on with"


def test_wandb_is_told_which_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str | None, str | None]] = []

    def init(**how: Any) -> SimpleNamespace:
        asked.append((how["id"], how["resume"]))
        return SimpleNamespace(id="abc", log=lambda values, step: None, finish=lambda exit_code: None)

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))  # type: ignore[arg-type]
    for steps in (2, 4):
        trainer(tmp_path, replace(SMALL, trackers=("wandb",), max_steps=steps)).run()
    assert asked == [(None, None), ("abc", "allow")]


@pytest.mark.parametrize("name", ["wandb", "mlflow", "tensorboard"])
def test_a_tracker_that_is_not_installed(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = {"wandb": "wandb", "mlflow": "mlflow.tracking", "tensorboard": "torch.utils.tensorboard"}[name]
    monkeypatch.setitem(sys.modules, module, None)
    if name == "mlflow":
        monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(SettingsError, match=f"pip install {name}"):
        trainer(tmp_path, replace(SMALL, trackers=(name,))).run()  # type: ignore[arg-type]


def test_a_tracker_that_refuses_says_how_to_go_on_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preset chose it, and the machine's variables name a store that it does not know."""
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere://at.all")
    with pytest.raises(SettingsError, match=r"tracker mlflow cannot be used: .*nowhere.*--set trackers="):
        trackers.open_trackers(["mlflow"], tmp_path, "run", {})


def test_other_ranks_write_nothing(tmp_path: Path) -> None:
    from hotlap_workloads.engine.journal import Journal

    journal = Journal(tmp_path / "out", "toy", replace(SMALL, trackers=("mlflow",)), Ranks(1, 2).first, print)
    journal.write(1, {"loss": 1.0})
    journal.track(1, {"loss": 1.0})
    journal.close()
    assert not (tmp_path / "out").exists()


def test_settings_are_kept_with_the_run(tmp_path: Path) -> None:
    trainer(tmp_path, SMALL).run()
    kept = json.loads((tmp_path / "settings.json").read_text())
    assert kept["workload"] == "toy" and kept["batch_size"] == 8


class Kept:
    """A tracker that keeps what it is told."""

    id = ""

    def __init__(self, *how: object) -> None:
        self.points: dict[int, dict[str, float]] = {}
        self.failed: bool | None = None
        kept.append(self)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self.points[step] = {**self.points.get(step, {}), **values}

    def artefact(self, path: Path) -> None: ...

    def close(self, failed: bool) -> None:
        self.failed = failed


kept: list[Kept] = []


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Kept]:
    monkeypatch.setitem(trackers._KINDS, "mlflow", Kept)
    kept.clear()
    return kept


def test_points_have_their_own_cadence(tmp_path: Path, told: list[Kept]) -> None:
    """Means since the point before, whatever the lines say, and across a resume; 0 is never."""
    watched = replace(SMALL, trackers=("mlflow",), print_every_steps=2, track_every_steps=3, evaluate_every_epochs=0)
    trainer(tmp_path / "all", replace(SMALL, print_every_steps=1)).run()
    for stop in (4, 0):
        trainer(tmp_path / "run", replace(watched, max_steps=stop)).run()
    single = losses(tmp_path / "all")
    points = {step: values["loss"] for one in told for step, values in one.points.items() if "loss" in values}
    assert points == pytest.approx({3: sum(single[n] for n in (1, 2, 3)) / 3, 6: sum(single[n] for n in (4, 5, 6)) / 3})
    assert sorted(losses(tmp_path / "run")) == [2, 4, 6]
    trainer(tmp_path / "never", replace(watched, track_every_steps=0)).run()
    assert list(told[-1].points) == [6] and "loss" not in told[-1].points[6]


@pytest.mark.parametrize("content", ["null", "[]", '{"mlflow": "a'])
def test_a_file_of_names_that_holds_none_costs_no_training(tmp_path: Path, told: list[Kept], content: str) -> None:
    settings = replace(SMALL, trackers=("mlflow",))
    trainer(tmp_path, replace(settings, max_steps=2)).run()
    (tmp_path / "trackers.json").write_text(content)
    assert trainer(tmp_path, settings).run().steps == 6
    assert json.loads((tmp_path / "trackers.json").read_text()) == {}


def test_the_names_of_before_outlive_a_disk_that_is_full(tmp_path: Path) -> None:
    """The file is written beside and then renamed: a training that is cut short there finds its runs again."""
    (tmp_path / "trackers.json").write_text('{"mlflow": "abc"}')
    (tmp_path / "trackers.json.new").symlink_to("/dev/full")
    with pytest.raises(WorkloadError, match="No space left"):
        trackers.open_trackers([], tmp_path, "run", {}, after=2)
    assert (tmp_path / "trackers.json").read_text() == '{"mlflow": "abc"}'


def test_a_failed_training_is_a_failed_run(tmp_path: Path, told: list[Kept]) -> None:
    settings = replace(SMALL, trackers=("mlflow",))
    trainer(tmp_path / "good", settings).run()
    with pytest.raises(WorkloadError, match="is nan"):
        trainer(tmp_path / "bad", settings, bad_row=11).run()
    assert [one.failed for one in told] == [False, True]


@pytest.mark.parametrize("how", ["log", "artefact", "close"])
def test_a_tracker_that_fails_costs_no_training(tmp_path: Path, told: list[Kept], how: str) -> None:
    """It is left out, said once, and the others are told on."""
    plain, calls = getattr(Kept, how), []

    def failing(self: Kept, *what: Any) -> None:
        plain(self, *what)
        if self is told[0] and (how != "log" or what[0] >= 4):
            calls.append(what)
            raise OSError("no route to host")

    settings = replace(SMALL, trackers=("mlflow", "wandb"), epochs=2, track_model=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(trackers._KINDS, "wandb", Kept)
        patch.setattr(Kept, how, failing)
        made = trainer(tmp_path, settings)
        assert made.run().steps == 12
    (said,) = (line for line in made.lines if "tracker" in line)
    assert said.startswith("The tracker mlflow failed and is told no more (OSError: no route to host); metrics.jsonl")
    assert len(calls) == 1 and told[1].failed is False and 12 in told[1].points
    assert sorted(losses(tmp_path)) == [2, 4, 6, 8, 10, 12]


def test_a_disk_that_is_full_for_a_line_is_told(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(WorkloadError, match=r"cannot be written: No space left .*\. Make room; the same command"):
        trainer(tmp_path, SMALL).run()


def test_mlflow_and_wandb_are_told_of_the_failure() -> None:
    said: list[object] = []
    flow, bees = trackers.MLflow.__new__(trackers.MLflow), trackers.WandB.__new__(trackers.WandB)
    flow.id, flow._client = "id", SimpleNamespace(set_terminated=lambda *how: said.append(how))
    bees._run = SimpleNamespace(finish=lambda exit_code: said.append(exit_code))
    for failed in (True, False):
        flow.close(failed)
        bees.close(failed)
    assert said == [("id", "FAILED"), 1, ("id", "FINISHED"), 0]
