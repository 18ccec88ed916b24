"""TensorBoard, Weights & Biases and MLflow: optional, off by default, one writer per run."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from hotlap_workloads.errors import SettingsError

__all__ = ["Tracker", "open_trackers"]


class Tracker(Protocol):
    """Where numbers go while a training runs."""

    def log(self, step: int, values: Mapping[str, float]) -> None: ...

    def artefact(self, path: Path) -> None: ...

    def close(self, failed: bool) -> None: ...


def open_trackers(names: Sequence[str], out: Path, run: str, settings: Mapping[str, Any]) -> list[Tracker]:
    """The trackers by name, all writing under ``out``. To be called on rank 0 alone.

    SettingsError where one cannot be used: not installed, a server that refuses.
    """
    return [_opened(name, out, run, settings) for name in names]


def _opened(name: str, out: Path, run: str, settings: Mapping[str, Any]) -> Tracker:
    try:
        found: Tracker = _KINDS[name](out, run, settings)
    except SettingsError:
        raise
    except Exception as err:  # each library has errors of its own
        why = (str(err).strip().splitlines() or [type(err).__name__])[0]
        hint = "Mend its settings (environment variables), or train without: --set trackers="
        raise SettingsError(f"The tracker {name} cannot be used: {why}", hint) from err
    return found


def _library(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as err:
        raise SettingsError(f"trackers={package} cannot be used: {err}.", f"pip install {package}") from err


class TensorBoard:
    """Event files in ``out/tensorboard``."""

    def __init__(self, out: Path, run: str, settings: Mapping[str, Any]) -> None:
        library = _library("torch.utils.tensorboard", "tensorboard")
        self._writer = library.SummaryWriter(str(out / "tensorboard"))
        self._writer.add_text("settings", "\n".join(f"    {key}: {value}" for key, value in settings.items()))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def artefact(self, path: Path) -> None:
        """TensorBoard keeps no files; the run's folder has it."""

    def close(self, failed: bool) -> None:
        self._writer.close()


class WandB:
    """A run in ``out/wandb``: offline unless WANDB_MODE says otherwise (``wandb sync`` sends it later)."""

    def __init__(self, out: Path, run: str, settings: Mapping[str, Any]) -> None:
        library = _library("wandb", "wandb")
        mode = os.environ.get("WANDB_MODE", "offline")
        self._library = library
        self._run = library.init(project="hotlap_workloads", name=run, dir=str(out), config=dict(settings), mode=mode)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def artefact(self, path: Path) -> None:
        artefact = self._library.Artifact(path.stem, type="model")
        artefact.add_file(str(path))
        self._run.log_artifact(artefact)

    def close(self, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))


class MLflow:
    """A run in MLFLOW_TRACKING_URI, or in the file store ``out/mlruns``."""

    def __init__(self, out: Path, run: str, settings: Mapping[str, Any]) -> None:
        self._allow_file_store()
        tracking = _library("mlflow.tracking", "mlflow")
        self._client = tracking.MlflowClient(os.environ.get("MLFLOW_TRACKING_URI", (out / "mlruns").resolve().as_uri()))
        found = self._client.get_experiment_by_name("hotlap_workloads")
        experiment = found.experiment_id if found else self._client.create_experiment("hotlap_workloads")
        self._id = self._client.create_run(experiment, run_name=run).info.run_id
        for key, value in settings.items():
            self._client.log_param(self._id, key, value)

    @staticmethod
    def _allow_file_store() -> None:
        """Newer versions refuse the file store unless told that it is meant."""
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._client.log_metric(self._id, name, value, step=step)

    def artefact(self, path: Path) -> None:
        self._client.log_artifact(self._id, str(path))

    def close(self, failed: bool) -> None:
        self._client.set_terminated(self._id, "FAILED" if failed else "FINISHED")


_KINDS: dict[str, Any] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}
