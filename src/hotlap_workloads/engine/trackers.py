"""TensorBoard, Weights & Biases and MLflow: optional, off by default, one writer per run."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hotlap_workloads.errors import SettingsError
from hotlap_workloads.parts.writing import writing_into

__all__ = ["Past", "Tracker", "open_trackers"]


IDS = "trackers.json"
"""In the run's folder: what each tracker calls the run, by which a training that goes on finds it again."""


@dataclass(frozen=True)
class Past:
    """The step that a training goes on from, 0 where it begins, and what the tracker called its run until then."""

    step: int = 0
    id: str | None = None


class Tracker(Protocol):
    """Where numbers go while a training runs. ``id`` is its own name of the run, empty where it needs none."""

    id: str

    def log(self, step: int, values: Mapping[str, float]) -> None: ...

    def artefact(self, path: Path) -> None: ...

    def close(self, failed: bool) -> None: ...


def open_trackers(
    names: Sequence[str], out: Path, run: str, settings: Mapping[str, Any], after: int = 0
) -> dict[str, Tracker]:
    """The trackers by name, all writing under ``out``. To be called on rank 0 alone.

    ``after`` is the step that the training goes on from: their runs of before go on, too, where they can.
    SettingsError where one cannot be used: not installed, a server that refuses.
    """
    ids: dict[str, str] = {}
    with suppress(OSError, ValueError):  # there is none, or one that is no JSON
        kept = json.loads((out / IDS).read_text(encoding="utf-8")) if after else {}
        ids = kept if isinstance(kept, dict) else {}
    opened = {name: _opened(name, out, run, settings, Past(after, ids.get(name))) for name in names}
    ids |= {name: tracker.id for name, tracker in opened.items() if tracker.id}
    if ids or (out / IDS).exists():
        with writing_into(out, "--out"):
            new = out / f"{IDS}.new"
            new.write_text(json.dumps(ids) + "\n", encoding="utf-8")
            os.replace(new, out / IDS)  # at once: one cut short would make the runs of before others
    return opened


def _opened(name: str, out: Path, run: str, settings: Mapping[str, Any], past: Past) -> Tracker:
    try:
        found: Tracker = _KINDS[name](out, run, settings, past)
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
    """Event files in ``out/tensorboard``. Points of steps that are trained again are not shown."""

    id = ""

    def __init__(self, out: Path, run: str, settings: Mapping[str, Any], past: Past) -> None:
        library = _library("torch.utils.tensorboard", "tensorboard")
        self._writer = library.SummaryWriter(str(out / "tensorboard"), purge_step=past.step + 1)
        text = "\n".join(f"    {key}: {value}" for key, value in settings.items())
        self._writer.add_text("settings", text, past.step)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def artefact(self, path: Path) -> None:
        """TensorBoard keeps no files; the run's folder has it."""

    def close(self, failed: bool) -> None:
        self._writer.close()


class WandB:
    """A run in ``out/wandb``: offline unless WANDB_MODE says otherwise (``wandb sync`` sends it later)."""

    def __init__(self, out: Path, run: str, settings: Mapping[str, Any], past: Past) -> None:
        self._library = _library("wandb", "wandb")
        how = {"config": dict(settings), "mode": os.environ.get("WANDB_MODE", "offline"), "dir": str(out)}
        again = {"id": past.id, "resume": "allow" if past.id else None}
        self._run = self._library.init(project="hotlap_workloads", name=run, **how, **again)
        self.id = str(self._run.id)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def artefact(self, path: Path) -> None:
        artefact = self._library.Artifact(path.stem, type="model")
        artefact.add_file(str(path))
        self._run.log_artifact(artefact)

    def close(self, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))


class MLflow:
    """A run in MLFLOW_TRACKING_URI, or in the file store ``out/mlruns``. Its parameters are those it began with."""

    def __init__(self, out: Path, run: str, settings: Mapping[str, Any], past: Past) -> None:
        self._allow_file_store()
        tracking = _library("mlflow.tracking", "mlflow")
        self._client = tracking.MlflowClient(os.environ.get("MLFLOW_TRACKING_URI", (out / "mlruns").resolve().as_uri()))
        self._last: dict[str, int] = {}
        self.id = self._gone_on_with(past.id) or self._begun(run, settings)

    def _begun(self, run: str, settings: Mapping[str, Any]) -> str:
        found = self._client.get_experiment_by_name("hotlap_workloads")
        experiment = found.experiment_id if found else self._client.create_experiment("hotlap_workloads")
        begun = str(self._client.create_run(experiment, run_name=run).info.run_id)
        for key, value in settings.items():
            self._client.log_param(begun, key, value)
        return begun

    def _gone_on_with(self, known: str | None) -> str:
        """The run of before, empty where it is gone. A point of it cannot be taken back, and is not written twice."""
        if known is None:
            return ""
        try:
            before = self._client.get_run(known)
        except _library("mlflow.exceptions", "mlflow").MlflowException:  # of another store
            return ""
        if before.info.lifecycle_stage != "active":
            return ""
        for name in before.data.metrics:
            self._last[name] = max(point.step for point in self._client.get_metric_history(known, name))
        self._client.update_run(known, status="RUNNING")
        return known

    @staticmethod
    def _allow_file_store() -> None:
        """Newer versions refuse the file store unless told that it is meant."""
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            if step > self._last.get(name, -1):
                self._client.log_metric(self.id, name, value, step=step)

    def artefact(self, path: Path) -> None:
        self._client.log_artifact(self.id, str(path))

    def close(self, failed: bool) -> None:
        self._client.set_terminated(self.id, "FAILED" if failed else "FINISHED")


_KINDS: dict[str, Any] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}
