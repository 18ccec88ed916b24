"""The plan of a packing: which rows go into which part. Kept on disk, so that a killed packing can go on."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hotlap.pack.manifest import MANIFEST, Manifest, Part, read_json, read_manifest, write_json, write_whole
from hotlap.pack.schema import Column, column_of, schema_from_json
from hotlap.pack.sources.contract import Source
from hotlap.records.errors import HotlapError

__all__ = ["Job", "PackSettings", "Planned", "conclude", "discard", "finished", "locked", "plan_job", "save_finished"]

Planned = tuple[str, int, int]
"""A part to be written: its file, the first of its rows, and the row behind the last."""
PART_BYTES = 256 << 20
"""Target size of a part: what a kill costs, and what one file of a copy is."""
_FOLDER = ".packing"
_LEFT_OUT = "left_out.jsonl"


@dataclass(frozen=True)
class PackSettings:
    """How to pack."""

    processes: int = 1
    """Packing processes; each writes whole parts."""
    on_error: str = "stop"
    """``stop`` at the first row that cannot be packed, or ``quarantine``: leave it out and list it."""
    chunk_bytes: int = 2 << 20
    """Size of a record batch, which is what one checksum covers."""
    part_bytes: int = PART_BYTES
    """Size of an Arrow file."""
    append: bool = False
    """Add to a pack that exists."""
    ragged: frozenset[str] = field(default_factory=frozenset)
    """Columns whose leading dimension varies, beside those the source names."""


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
    def work(self) -> Path:
        return self.folder / _FOLDER


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One packing per folder at a time; the lock goes with its process, however that ends."""
    work = folder / _FOLDER
    path = work / "lock"
    lock = _taken(path, folder)
    try:
        names = (".part-*.tmp", f".{MANIFEST}.*.tmp", f".{_LEFT_OUT}.*.tmp", f"{_FOLDER}/.*.tmp")
        for left in (path for name in names for path in folder.glob(name)):  # of a packing that was killed
            left.unlink()
        yield
    finally:
        is_done = not any(p != path for p in work.iterdir())
        if is_done:
            path.unlink()
        lock.close()
        if is_done:
            with suppress(OSError):  # the next packing is there already
                work.rmdir()


def _taken(path: Path, folder: Path) -> IO[str]:
    """The lock, held. Who waited to open it while its holder removed it has a file that nobody else sees: again."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(path, "w")  # noqa: SIM115 - held while packing
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
                return lock
        except FileNotFoundError:
            pass
        except OSError as err:
            lock.close()
            raise HotlapError(f"{folder} is being packed by another process.", "Wait until it is done.") from err
        lock.close()


def _telling_row(source: Source, settings: PackSettings) -> dict[str, Any]:
    """The first row from which the columns can be told: of an empty list neither type nor shape are known."""
    last: Exception | None = None
    found: dict[str, Any] | None = None
    for index in range(min(len(source), 1000)):
        try:
            row = source.row(index)
        except Exception as err:
            last = err
            if settings.on_error == "stop":
                hint = "Leave such rows out with --on-error quarantine."
                raise HotlapError(f"Cannot pack {source.name(index)}: {err}", hint) from err
        else:
            if not any(tuple(getattr(value, "shape", ())) == (0,) for value in row.values()):
                return row
            found = found or row
    if found is not None:
        return found
    raise HotlapError("No row of the source can be packed.", f"The last one tried said: {last}") from last


def _row_bytes(row: dict[str, Any]) -> int:
    def size(value: Any) -> int:
        if isinstance(value, bytes | str):
            return len(value)
        return int(getattr(value, "nbytes", 8))

    return max(1, sum(size(v) for v in row.values()))


def _check_meaning(before: dict[str, Any], now: dict[str, Any]) -> None:
    """What numbers in the columns mean (classes, speakers) has to be the same in what is appended."""
    for key in sorted(before.keys() & now.keys() - {"source"}):
        if before[key] != now[key]:
            raise HotlapError(
                f"The pack's {key} are {_brief(before[key])}, those of the source {_brief(now[key])}: the same number "
                "would mean different things.", "Pack both together, into a new folder.",
            )  # fmt: skip


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"


def plan_job(source: Source, folder: Path, settings: PackSettings) -> Job:
    """Columns and parts of this packing; those of the interrupted one where there is one."""
    before = read_manifest(folder) if settings.append else None
    if before is None and (folder / MANIFEST).exists():
        raise HotlapError(f"{folder} is a pack already.", "Add to it with --append, or choose another folder.")
    if len(source) == 0:
        raise HotlapError("The source is empty: there is nothing to pack.", "Is it the right SRC?")
    if before is not None:
        _check_meaning(before.metadata, source.metadata)
    path, fingerprint = folder / _FOLDER / "plan.json", source.fingerprint()
    same = [fingerprint, settings.on_error, sorted(settings.ragged), settings.append]
    if path.exists():
        found = read_json(path)
        if found["same"] != same:
            raise HotlapError(
                f"{folder} holds an interrupted packing of another source, or with other settings.",
                f"Repeat the command that was interrupted, or remove {folder} and start again.",
            )
        parts = [(f, a, b) for f, a, b in found["parts"]]
        job = Job(folder, schema_from_json(found["columns"]), parts, before, fingerprint)
        if before is not None and {p.file for p in before.parts} & {file for file, _, _ in job.parts}:
            _remove_notes(job.work)  # it was whole: only its notes were left when it was killed
            raise HotlapError(f"{folder} has these rows already: the packing that was interrupted was done.",
                              "Run the command again to add them once more.")  # fmt: skip
        return job
    row = _telling_row(source, settings)
    ragged = source.ragged | settings.ragged
    columns = before.columns if before else tuple(column_of(name, value, name in ragged) for name, value in row.items())
    per_part = max(1, min(settings.part_bytes // _row_bytes(row), -(-len(source) // (4 * settings.processes))))
    first = 1 + max((int(p.file[5:-6]) for p in before.parts), default=-1) if before else 0
    starts = range(0, len(source), per_part)
    parts = [(f"part-{first + n:05d}.arrow", at, min(at + per_part, len(source))) for n, at in enumerate(starts)]
    write_json(path, {"same": same, "columns": [c.to_json() for c in columns], "parts": parts})
    return Job(folder, columns, parts, before, fingerprint)


def save_finished(job_folder: Path, part: Part, left_out: Sequence[tuple[str, str]]) -> None:
    """Note that a part is whole."""
    path = job_folder / _FOLDER / f"{part.file}.json"
    write_json(path, {"part": part.to_json(), "left_out": list(left_out)})


def finished(job: Job) -> dict[str, tuple[Part, list[tuple[str, str]]]]:
    """Parts that are whole, from this run or an earlier one: file -> (table, rows left out)."""
    done = {}
    for file, _, _ in job.parts:
        note = job.work / f"{file}.json"
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
    _list_left_out(job.folder / _LEFT_OUT, earlier, left_out)
    write_json(job.folder / MANIFEST, manifest.to_json())
    _remove_notes(job.work)
    return manifest


def _list_left_out(path: Path, earlier: int, left_out: Sequence[tuple[str, str]]) -> None:
    """Behind the first ``earlier`` lines: what follows them is of a packing that was killed before its manifest."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:earlier] if path.exists() else []
    lines += [json.dumps({"name": n, "reason": r}, ensure_ascii=False) + "\n" for n, r in left_out]
    if lines or path.exists():
        write_whole(path, "".join(lines))


def discard(job: Job) -> None:
    """Forget a packing, its finished parts too: the same call begins anew."""
    _remove_notes(job.work)
    for file, _, _ in job.parts:
        _remove_part(job.folder, file)


def _remove_part(folder: Path, file: str) -> None:
    for path in (folder / file, (folder / file).with_suffix(".lengths")):
        path.unlink(missing_ok=True)


def _remove_notes(work: Path) -> None:
    """The plan first: notes without it are those of no packing."""
    (work / "plan.json").unlink(missing_ok=True)
    for note in work.glob("*.json"):
        note.unlink()
