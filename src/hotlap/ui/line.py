"""One line of the list: what a run's documents say in short. Only the parts that are shown are read and checked."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hotlap.records.codec import decode
from hotlap.records.errors import HotlapError, RecordError
from hotlap.records.findings import Roof, Throughput
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import Interval
from hotlap.report.run_words import measured_speedup, verdict_of
from hotlap.ui.shelf import check_folder, read_file, signature

__all__ = ["DOCUMENTS", "Line", "Lines", "reason", "silent_s"]

DOCUMENTS = ("run.json", "findings.json", "proof.json", "guard.json", "check.json")
"""What a line is made of."""
QUIET_S = 60.0
QUIET_FRAC = 0.002
"""A run that goes on writes every second, a long one ever more rarely (the recorder's telemetry every 0.0005 of its
length): after the longer of both without a word it is told that it is silent."""
T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """A run in short. None: not measured, or the run did not get there."""

    name: str
    started: str = ""
    kind: str = ""
    command: tuple[str, ...] = ()
    status: str = "unreadable"
    exit_code: int | None = None
    samples_per_s: float | None = None
    steps_per_s: float | None = None
    roof_share: float | None = None
    speedup: Interval | None = None
    verdict: str = ""
    """Of a proof or a check: ``proved``, ``not proved`` or ``refuted``."""
    planned: bool = False
    """Whether throughput and share are those of the proved plan, not of the script as it was."""
    drifts: int = 0
    problem: str = ""
    """Why it, or a part of it, cannot be read."""


class Lines:
    """Lines of many runs, each made anew only when one of its documents has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[tuple[int, int], ...], Line]] = {}

    def line(self, folder: RunFolder) -> Line:
        """The line of a run; never an error, but a line that says what is wrong."""
        name = folder.path.name
        seen = signature(folder.path, DOCUMENTS)
        known = self._known.get(name)
        if known is not None and known[0] == seen:
            return known[1]
        line = _read(folder)
        self._known[name] = (seen, line)
        return line

    def forget_all_but(self, names: set[str]) -> None:
        """Runs that were removed."""
        for name in self._known.keys() - names:
            self._known.pop(name, None)


def reason(err: Exception) -> str:
    """An error as a sentence; one that nobody foresaw names its kind."""
    if isinstance(err, HotlapError):
        return f"{err.what} {err.hint}".strip()
    return f"It cannot be read: {type(err).__name__}: {err}"


def silent_s(folder: Path, status: str) -> float | None:
    """Seconds since anything was written to the folder of a run that goes on; None while that is not long."""
    if status != "running":
        return None
    newest = began = 0.0
    for place in (folder, folder / "trials", folder / "timelines", *_folders(folder / "timelines")):
        try:
            with os.scandir(place) as entries:
                times = {entry.name: entry.stat(follow_symlinks=False).st_mtime for entry in entries}
        except OSError:
            continue  # not there, or just removed
        newest = max(newest, *times.values()) if times else newest
        began = times.get("run.json", began)  # written at the start, and again at the end only
    quiet = time.time() - newest
    return quiet if quiet > max(QUIET_S, QUIET_FRAC * (newest - began)) else None


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _read(folder: RunFolder) -> Line:
    name = folder.path.name
    try:
        check_folder(folder.path, deep=False)
        data = _object(folder, "run.json")
        if data is None:
            raise RecordError(f"{name} has no run.json.", "Is it a run's folder?")
        run: RunRecord = decode(RunRecord, data, "run.json: $")
    except Exception as err:  # whatever lies there: the list goes on, and says so at this run
        return Line(name, problem=reason(err))
    line = Line(
        name, started=run.started, kind=run.kind, command=tuple(run.command), status=run.status,
        exit_code=run.exit_code,
    )  # fmt: skip
    try:
        return _measured(line, folder)
    except Exception as err:
        return Line(**{**vars(line), "problem": reason(err)})


def _measured(line: Line, folder: RunFolder) -> Line:
    """The same with its numbers: those of the proved plan where there is one, else of the script as it was."""
    found, proof, guard, check = (_object(folder, name) for name in DOCUMENTS[1:])
    more: dict[str, Any] = {"verdict": verdict_of(check)} if check is not None else {}
    if found is not None:
        throughput = _part(found, "throughput", Throughput, "findings.json")
        more |= {"samples_per_s": throughput.samples_per_s, "steps_per_s": throughput.steps_per_s}
        roof: Roof | None = _part(found, "roof", Roof | None, "findings.json")
        more["roof_share"] = roof.share if roof is not None else None
    if proof is not None:
        speedup: Interval | None = _part(proof, "speedup", Interval | None, "proof.json")
        more |= {"speedup": measured_speedup(speedup), "verdict": verdict_of({**proof, "speedup": speedup})}
        if proof.get("claimed") is True:
            more |= _planned(proof, more)
    if guard is not None:
        alarms = _part(guard, "alarms", list[Any], "guard.json")
        more["drifts"] = len(alarms)
        if found is None and line.status != "running":  # while it runs, what lies there is from before an alarm
            more |= _guarded(guard)
    return Line(**{**vars(line), **more})


def _planned(proof: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Throughput and share of the roof with the proved plan; steps per second where samples are unknown."""
    per_s = _part(proof, "samples_per_s", float | None, "proof.json")
    share = _part(proof, "roof_share", float | None, "proof.json")
    speedup, steps_per_s = before["speedup"], before.get("steps_per_s")
    more: dict[str, Any] = {"roof_share": share} if share is not None else {}
    if per_s is not None:
        return more | {"planned": True, "samples_per_s": per_s}
    if speedup is None or steps_per_s is None:
        return more
    return more | {"planned": True, "samples_per_s": None, "steps_per_s": steps_per_s * speedup.ratio}


def _guarded(guard: dict[str, Any]) -> dict[str, Any]:
    """Throughput over a whole guarded run."""
    train_s, samples = _part(guard, "train_s", float, "guard.json"), _part(guard, "samples", int, "guard.json")
    steps = _part(guard, "steps", int, "guard.json")
    if train_s <= 0:
        return {}
    return {"samples_per_s": samples / train_s if samples else None, "steps_per_s": steps / train_s}


def _part(data: dict[str, Any], key: str, cls: Any, name: str) -> Any:
    return decode(cls, data.get(key), f"{name}: $.{key}")


def _object(folder: RunFolder, name: str) -> dict[str, Any] | None:
    raw = read_file(folder.path / name)
    if raw is None:
        return None
    try:
        data = json.loads(raw.decode())
    except (ValueError, RecursionError) as err:
        raise RecordError(f"{name} is not valid JSON: {err}.", "Half written, or cut off?") from err
    if not isinstance(data, dict):
        raise RecordError(f"{name} is no JSON object.")
    return data
