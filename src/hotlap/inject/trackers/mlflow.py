"""MLflow: metrics of the run that is active, through a client of our own, as MLflow's system metrics are written.

``mlflow.active_run()`` is kept per thread, so it is asked on the script's thread whenever a run was started or ended.
A metric of MLflow has a step and a time of its own: nothing of the script's is counted on. What is told of drifts is
the tag ``hotlap.drift_told``.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from hotlap.inject.trackers.contract import TOLD, Unheard
from hotlap.probe.own_frames import strip
from hotlap.probe.undo import Undo
from hotlap.records.figures import Figures

__all__ = ["MODULES", "MLflow"]

MODULES = ("mlflow.tracking.fluent",)
TAG = TOLD.replace("/", ".")


class _Run:
    """The run that the script has open, and the server that keeps it."""

    def __init__(self, run_id: str, server: str) -> None:
        self.run_id = run_id
        self.server = server
        self.unheard = Unheard()


class MLflow:
    """Knows the active run; of nested ones the innermost."""

    def __init__(self, module: Any, undo: Undo) -> None:
        self.name = "MLflow"
        self.given = 0
        self._module = module
        self._run: _Run | None = None
        self._client: tuple[str, Any] | None = None
        self._trouble: Exception | None = None
        """What MLflow answered when it was asked for the active run on the script's thread: for the export to tell."""
        for name in ("start_run", "end_run"):
            undo.replace(module, name, self._noticed(getattr(module, name)))

    def _noticed(self, original: Any) -> Any:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except BaseException as err:
                strip(err)
                raise
            finally:
                self._look()

        return call

    def _look(self) -> None:
        try:
            active = self._module.active_run()
            run_id = None if active is None else active.info.run_id
            if run_id is None:
                self._run = None
            elif self._run is None or self._run.run_id != run_id:
                self._run = _Run(run_id, str(self._module.mlflow.get_tracking_uri()))
        except Exception as err:  # the script's call is not to suffer from our question
            self._run, self._trouble = None, err

    def give(self, figures: Figures) -> None:
        """All metrics in one request. On a thread of ours, which alone waits for the server."""
        run, module = self._run, self._module
        if self._trouble is not None:
            raise self._trouble
        if run is None:
            return
        if self._client is None or self._client[0] != run.server:
            self._client = run.server, module.MlflowClient(tracking_uri=run.server)
        client, now_ms = self._client[1], int(time.time() * 1000)
        told = run.unheard.of(figures)
        tags = [module.RunTag(TAG, told[-1])] if told else []
        metrics = [module.Metric(name, value, now_ms, figures.step) for name, value in figures.values.items()]
        client.log_batch(run.run_id, metrics=metrics, tags=tags)
        run.unheard.have(figures)
        self.given += 1
