"""What a training says while it runs: progress lines, ``metrics.jsonl``, trackers. On rank 0 alone."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.trackers import Tracker, open_trackers
from hotlap_workloads.parts.writing import writing_into

__all__ = ["METRICS", "SETTINGS", "Journal"]

METRICS = "metrics.jsonl"
SETTINGS = "settings.json"


class Journal:
    """One writer per run; on other ranks it does nothing."""

    def __init__(self, out: Path, name: str, settings: EngineSettings, first: bool, say: Callable[[str], None]):
        self._first, self._say, self._out = first, say, out
        self._trackers: list[Tracker] = []
        if first:
            values = dataclasses.asdict(settings)
            with writing_into(out, "--out"):
                (out / SETTINGS).write_text(json.dumps({"workload": name, **values}, indent=1) + "\n", encoding="utf-8")
            self._trackers = open_trackers(settings.trackers, out, name, values)

    @property
    def tracks(self) -> bool:
        """Whether points of :meth:`track` go anywhere."""
        return bool(self._trackers)

    def say(self, line: str) -> None:
        if self._first:
            self._say(line)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """A line of ``metrics.jsonl``."""
        if self._first:
            with open(self._out / METRICS, "a", encoding="utf-8") as out:
                out.write(json.dumps({"step": step, **values}) + "\n")

    def track(self, step: int, values: Mapping[str, float]) -> None:
        for tracker in self._trackers:
            tracker.log(step, values)

    def artefact(self, path: Path) -> None:
        for tracker in self._trackers:
            tracker.artefact(path)

    def close(self, failed: bool = False) -> None:
        """End the trackers' runs, as failed where the training was."""
        for tracker in self._trackers:
            tracker.close(failed)
