"""Trackers write runs that their own readers read; without the library, the error says what to install."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from toy import trainer

from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.errors import SettingsError

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
