"""A packing under way: its parts, the notes of those that are whole, and how it ends. Kept on disk, so that one that
was killed can go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotlap.pack.manifest import LEFT_OUT, MANIFEST, WORK, Manifest, Part, read_json, write_json, write_whole
from hotlap.pack.schema import Column
from hotlap.records.errors import HotlapError

__all__ = ["PLAN", "Done", "Job", "Planned", "conclude", "discard", "finished", "remove_notes", "save_finished"]

PLAN = f"{WORK}/plan.json"
Planned = tuple[str, int, int]
"""A part to be written: its file, the first of its rows, and the row behind the last."""
Done = dict[str, tuple[Part, list[tuple[str, str]]]]
"""Parts that are whole: file -> (table, rows left out)."""


@dataclass(frozen=True)
class Job:
    """One packing: the columns, and the rows of each part still wanted or done."""

    folder: Path
    columns: tuple[Column, ...]
    parts: list[Planned]
    before: Manifest | None
    """The pack that is appended to."""
    fingerprint: str
    """Of the source as it was planned."""

    @property
    def plan(self) -> Path:
        return self.folder / PLAN

    @property
    def work(self) -> Path:
        return self.folder / WORK

    def note(self, file: str) -> Path:
        """Says that the part ``file`` is whole."""
        return self.work / f"{file}.json"


def save_finished(job: Job, part: Part, left_out: Sequence[tuple[str, str]]) -> None:
    """Note that a part is whole."""
    write_json(job.note(part.file), {"part": part.to_json(), "left_out": list(left_out)})


def finished(job: Job) -> Done:
    """Parts that are whole, from this run or an earlier one."""
    done = {}
    for file, _, _ in job.parts:
        note = job.note(file)
        if note.exists():
            found = read_json(note)
            part = Part.from_json(found["part"])
            path = job.folder / file
            if part.rows == 0 or (path.exists() and path.stat().st_size == part.size_bytes):
                done[file] = (part, [(str(n), str(r)) for n, r in found["left_out"]])
    return done


def conclude(job: Job, metadata: dict[str, Any]) -> Manifest:
    """Write the manifest (from now on the folder is a pack) and the list of rows left out; remove the notes."""
    done = finished(job)
    tables = [done[file] for file, _, _ in job.parts]
    left_out = [entry for _, entries in tables for entry in entries]
    if not any(part.rows for part, _ in tables):
        raise HotlapError("No row of the source could be packed.", f"The first one said: {left_out[0][1]}")
    for part, _ in tables:
        if part.rows == 0:
            _remove_part(job.folder, part.file)
    old = job.before
    parts = (old.parts if old else []) + [part for part, _ in tables if part.rows]
    earlier = old.left_out if old else 0
    manifest = Manifest(job.columns, parts, {**(old.metadata if old else {}), **metadata}, earlier + len(left_out))
    _list_left_out(job.folder / LEFT_OUT, earlier, left_out)
    write_json(job.folder / MANIFEST, manifest.to_json())
    remove_notes(job)
    return manifest


def _list_left_out(path: Path, earlier: int, left_out: Sequence[tuple[str, str]]) -> None:
    """Behind the first ``earlier`` lines: what follows them is of a packing that was killed before its manifest."""
    told = path.read_text(encoding="utf-8").split("\n") if path.exists() else []  # a name may hold other line ends
    lines = [f"{line}\n" for line in told[:earlier] if line]
    lines += [json.dumps({"name": n, "reason": r}, ensure_ascii=False) + "\n" for n, r in left_out]
    if lines or path.exists():
        write_whole(path, "".join(lines))


def discard(job: Job) -> None:
    """Forget a packing, its finished parts too: the same call begins anew."""
    remove_notes(job)
    for file, _, _ in job.parts:
        _remove_part(job.folder, file)


def _remove_part(folder: Path, file: str) -> None:
    for path in (folder / file, (folder / file).with_suffix(".lengths")):
        path.unlink(missing_ok=True)


def remove_notes(job: Job) -> None:
    """The plan first: notes without it are those of no packing."""
    job.plan.unlink(missing_ok=True)
    for note in job.work.glob("*.json"):
        note.unlink()
