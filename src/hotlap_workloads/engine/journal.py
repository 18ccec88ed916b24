"""What a training says while it runs: progress lines, ``metrics.jsonl``, trackers. On rank 0 alone."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.trackers import Tracker, open_trackers
from hotlap_workloads.errors import first_line
from hotlap_workloads.parts.writing import writing, writing_into

__all__ = ["METRICS", "SETTINGS", "Journal"]

METRICS = "metrics.jsonl"
SETTINGS = "settings.json"
ROOM = "Make room; the same command goes on from the last checkpoint."


class Journal:
    """One writer per run; on other ranks it does nothing.

    ``data`` is the folder that the run is trained on, None for a set of its own. ``after`` is the step that it goes on
    from: what a run that was killed has said of later ones is said again.
    """

    def __init__(
        self,
        out: Path,
        name: str,
        settings: EngineSettings,
        first: bool,
        say: Callable[[str], None],
        data: str | None = None,
        after: int = 0,
    ) -> None:
        self._first, self._say, self._out = first, say, out
        self._trackers: dict[str, Tracker] = {}
        if first:
            values = dataclasses.asdict(settings)
            with writing_into(out, "--out"):
                text = json.dumps({"workload": name, "data": data, **values}, indent=1)
                (out / SETTINGS).write_text(text + "\n", encoding="utf-8")
                _cut(out / METRICS, after)
            self._trackers = open_trackers(settings.trackers, out, name, values, after)

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
            with writing(self._out, ROOM), open(self._out / METRICS, "a", encoding="utf-8") as out:
                out.write(json.dumps({"step": step, **values}) + "\n")

    def track(self, step: int, values: Mapping[str, float]) -> None:
        self._tell(lambda tracker: tracker.log(step, values))

    def artefact(self, path: Path) -> None:
        self._tell(lambda tracker: tracker.artefact(path))

    def close(self, failed: bool = False) -> None:
        """End the trackers' runs, as failed where the training was."""
        self._tell(lambda tracker: tracker.close(failed))

    def _tell(self, what: Callable[[Tracker], None]) -> None:
        """One that fails, as a server does that is gone, is left out from then on: no reason to lose a training."""
        for name, tracker in tuple(self._trackers.items()):
            try:
                what(tracker)
            except Exception as err:  # each library has errors of its own
                del self._trackers[name]
                why = f"{type(err).__name__}: {first_line(err)}"
                self.say(f"The tracker {name} failed and is told no more ({why}); {METRICS} has it all.")


def _cut(metrics: Path, after: int) -> None:
    """Leave the lines of later steps out, and one that was cut short."""
    if not metrics.is_file():
        return
    text = metrics.read_text(encoding="utf-8", errors="replace")
    kept = "".join(f"{line}\n" for line in text.splitlines() if _step_of(line) <= after)
    if kept != text:
        new = metrics.with_name(f"{METRICS}.new")
        new.write_text(kept, encoding="utf-8")
        os.replace(new, metrics)


def _step_of(line: str) -> float:
    """The step that a line is of, later than any where it is no line of ours."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, TypeError, KeyError):
        return math.inf
