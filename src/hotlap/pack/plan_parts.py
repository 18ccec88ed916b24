"""The plan of a packing: which rows go into which part, and whether one that was interrupted goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotlap.pack.job import PLAN, Done, Job, discard, finished, remove_notes
from hotlap.pack.manifest import MANIFEST, Manifest, part_file, part_number, read_json, read_manifest, write_json
from hotlap.pack.schema import columns_of, schema_from_json
from hotlap.pack.sources.contract import Source
from hotlap.pack.sources.options import LAYOUT, RESIZED, STORE
from hotlap.records.errors import HotlapError

__all__ = ["PackSettings", "cannot_pack", "check_new", "plan_job", "reason_of"]

PART_BYTES = 256 << 20
"""Target size of a part: what a kill costs, and what one file of a copy is."""


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


def reason_of(err: Exception) -> str:
    """Why a row cannot be packed. What is no text for people says little without its type: ``KeyError: 'id'``."""
    text = str(err)
    if text and isinstance(err, HotlapError | OSError):
        return text
    return f"{type(err).__name__}: {text}" if text else type(err).__name__


def cannot_pack(source: Source, index: int, err: Exception) -> HotlapError:
    """The error that stops at a row."""
    hint = "Leave such rows out with --on-error quarantine."
    return HotlapError(f"Cannot pack {source.name(index)}: {reason_of(err)}", hint)


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
                raise cannot_pack(source, index, err) from err
        else:
            if not any(tuple(getattr(value, "shape", ())) == (0,) for value in row.values()):
                return row
            found = found or row
    if found is not None:
        return found
    raise HotlapError(
        "No row of the source can be packed.", f"The last one tried said: {last and reason_of(last)}"
    ) from last


def _row_bytes(row: dict[str, Any]) -> int:
    def size(value: Any) -> int:
        if isinstance(value, bytes | str):
            return len(value)
        return int(getattr(value, "nbytes", 8))

    return max(1, sum(size(v) for v in row.values()))


def _check_meaning(before: dict[str, Any], now: dict[str, Any]) -> None:
    """What numbers in the columns mean (classes, speakers) has to be the same in what is appended."""
    if ("classes" in before) != ("classes" in now):
        told, silent = ("pack", "source") if "classes" in before else ("source", "pack")
        raise HotlapError(
            f"The {told} names its classes ({_brief({**before, **now}['classes'])}), the {silent} does not: whether "
            "the same number means the same is not known.", "Pack both together, into a new folder.",
        )  # fmt: skip
    for key in sorted(before.keys() & now.keys() - {"source", STORE, LAYOUT, RESIZED}):
        if before[key] != now[key]:
            raise HotlapError(
                f"The pack's {key} are {_brief(before[key])}, those of the source {_brief(now[key])}: the same number "
                "would mean different things.", "Pack both together, into a new folder.",
            )  # fmt: skip


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"


def check_new(folder: Path) -> None:
    """HotlapError where ``folder`` is a pack already."""
    if (folder / MANIFEST).exists():
        raise HotlapError(f"{folder} is a pack already.", "Add to it with --append, or choose another folder.")


def plan_job(source: Source, folder: Path, settings: PackSettings) -> tuple[Job, Done]:
    """Columns and parts of this packing; those of the interrupted one where there is one, and what of it is done."""
    before = read_manifest(folder) if settings.append else None
    if before is None:
        check_new(folder)
    if len(source) == 0:
        raise HotlapError("The source is empty: there is nothing to pack.", "Is it the right SRC?")
    if before is not None:
        _check_meaning(before.metadata, source.metadata)
    same: list[Any] = [source.fingerprint(), sorted(settings.ragged), settings.append]
    interrupted = _interrupted(folder, same, before, settings)
    if interrupted is not None:
        return interrupted
    if before is not None:
        _remove_unlisted(folder, before)
    row = _telling_row(source, settings)
    if unknown := sorted(settings.ragged - row.keys()):
        raise HotlapError(f"--ragged {unknown[0]}: the columns are {', '.join(row)}.", "Name one of them.", exit_code=2)
    columns = before.columns if before else columns_of(row, source.ragged | settings.ragged)
    per_part = max(1, min(settings.part_bytes // _row_bytes(row), -(-len(source) // (4 * settings.processes))))
    first = _first_free(before) if before else 0
    starts = range(0, len(source), per_part)
    parts = [(part_file(first + n), at, min(at + per_part, len(source))) for n, at in enumerate(starts)]
    job = Job(folder, columns, parts, before, same[0])
    write_json(job.plan, {"same": same, "columns": [c.to_json() for c in columns], "parts": parts})
    return job, {}


def _interrupted(
    folder: Path, same: list[Any], before: Manifest | None, settings: PackSettings
) -> tuple[Job, Done] | None:
    """The packing that was interrupted here, to go on with; None where there is none, or nothing of it is left."""
    if not (folder / PLAN).exists():
        return None
    found = read_json(folder / PLAN)
    parts = [(f, a, b) for f, a, b in found["parts"]]
    job = Job(folder, schema_from_json(found["columns"]), parts, before, same[0])
    is_same = found["same"] == same
    if before is not None and {p.file for p in before.parts} & {file for file, _, _ in parts}:
        remove_notes(job)  # it was whole: only its notes were left when it was killed
        if not is_same:
            return None
        raise HotlapError(f"{folder} has these rows already: the packing that was interrupted was done.",
                          "Run the command again to add them once more.")  # fmt: skip
    done = finished(job)
    if not is_same:
        if any(part.rows for part, _ in done.values()):
            raise _another(job, found["same"][0] == same[0])
        discard(job)
        return None
    if settings.on_error == "stop":  # it is to stop at rows that were left out before
        for file in [file for file, (_, left_out) in done.items() if left_out]:
            job.note(file).unlink()
            del done[file]
    return job, done


def _another(job: Job, is_same_source: bool) -> HotlapError:
    """What lies there cannot be gone on with by this command. Nothing that is a pack already need be removed."""
    what = "this source with other options" if is_same_source else "another source, or of this one before it changed"
    rest = ": what is packed already stays" if job.before else " and the part-* files beside it"
    hint = f"Repeat the command that was interrupted, and it goes on. To begin anew, remove {job.work}{rest}."
    return HotlapError(f"{job.folder} holds an interrupted packing of {what}.", hint)


def _first_free(before: Manifest) -> int:
    """The number of the first part that is appended."""
    return 1 + max((part_number(part.file) for part in before.parts), default=-1)


def _remove_unlisted(folder: Path, before: Manifest) -> None:
    """Parts of an append that was given up: behind the pack's own, and in no manifest."""
    first = _first_free(before)
    for path in folder.glob("part-*"):
        if part_number(path.name) >= first:
            path.unlink()
