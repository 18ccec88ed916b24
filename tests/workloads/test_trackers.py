"""Trackers write runs that their own readers read; without the library, the error says what to install."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from toy import losses, trainer

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


def test_a_failed_training_is_a_failed_run(tmp_path: Path, told: list[Kept]) -> None:
    settings = replace(SMALL, trackers=("mlflow",))
    trainer(tmp_path / "good", settings).run()
    with pytest.raises(WorkloadError, match="is nan"):
        trainer(tmp_path / "bad", settings, bad_row=11).run()
    assert [one.failed for one in told] == [False, True]


def test_mlflow_and_wandb_are_told_of_the_failure() -> None:
    said: list[object] = []
    flow, bees = trackers.MLflow.__new__(trackers.MLflow), trackers.WandB.__new__(trackers.WandB)
    flow._id, flow._client = "id", SimpleNamespace(set_terminated=lambda *how: said.append(how))
    bees._run = SimpleNamespace(finish=lambda exit_code: said.append(exit_code))
    for failed in (True, False):
        flow.close(failed)
        bees.close(failed)
    assert said == [("id", "FAILED"), 1, ("id", "FINISHED"), 0]
