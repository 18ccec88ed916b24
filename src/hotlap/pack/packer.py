"""Packing: a source's rows into parts, by several processes, with rows that fail left out or the reason to stop."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hotlap.pack.appending import check_pack
from hotlap.pack.helpers import pack_together
from hotlap.pack.job import Job, Planned, conclude, discard, save_finished
from hotlap.pack.lock import locked
from hotlap.pack.manifest import Manifest
from hotlap.pack.part_writer import PartWriter
from hotlap.pack.plan_parts import PackSettings, cannot_pack, plan_job, reason_of
from hotlap.pack.sources.contract import Source
from hotlap.records.errors import HotlapError

__all__ = ["Progress", "pack"]

Progress = Callable[[int, int], None]
"""Called now and then with (rows done, rows in all)."""
_EVERY = 16
"""Rows between two reports of progress."""


def pack(source: Source, folder: str | Path, settings: PackSettings | None = None,
         progress: Progress | None = None) -> Manifest:  # fmt: skip
    """Pack ``source`` into ``folder``. Interrupted, the same call goes on where it was.

    Raises HotlapError; until it returns, the folder is no pack.
    """
    settings = settings or PackSettings()
    if settings.on_error not in ("stop", "quarantine"):
        raise HotlapError(f"on_error is {settings.on_error!r}; it is stop or quarantine.", exit_code=2)
    target = Path(folder)
    if settings.append:
        check_pack(target)  # before anything is made there
    is_new = not target.exists()
    try:
        with locked(target):
            job, done = plan_job(source, target, settings)
            rows_done = sum(b - a for file, a, b in job.parts if file in done)
            report = _reporter(progress, rows_done, len(source))
            todo = [p for p in job.parts if p[0] not in done]
            if settings.processes > 1 and len(todo) > 1:
                pack_part = partial(_pack_part_apart, source, job, settings)
                pack_together(todo, settings.processes, pack_part, report, getattr(source, "may_fork", False))
            else:
                _in_this_process(source, job, todo, settings, report)
            if source.fingerprint() != job.fingerprint:
                discard(job)  # of a file that holds many rows, some may be of the one version and some of the other
                hint = "Run the same command again once nothing writes to it."
                raise HotlapError("The source changed while it was packed.", hint)
            return conclude(job, dict(source.metadata))
    except OSError as err:
        raise _disk_error(err, target) from err
    finally:
        if is_new and target.exists() and not any(target.iterdir()):  # a packing that never began
            target.rmdir()


def _disk_error(err: OSError, target: Path) -> HotlapError:
    if err.errno == errno.ENOSPC or "No space left" in str(err):
        return HotlapError(
            f"The disk of {target} is full.", "Make room and run the same command again: finished parts are kept."
        )
    return HotlapError(f"Packing into {target} failed: {err}.", "Is it a folder that you can write?")


def _reporter(progress: Progress | None, already: int, total: int) -> Callable[[int], None]:
    def report(rows: int) -> None:
        if progress is not None:
            progress(min(already + rows, total), total)

    report(0)
    return report


def _pack_part(source: Source, job: Job, part: Planned, settings: PackSettings,
               report: Callable[[int], None]) -> None:  # fmt: skip
    file, first, behind = part
    left_out: list[tuple[str, str]] = []
    with PartWriter(job.folder, file, job.columns, settings.chunk_bytes) as writer:
        for index in range(first, behind):
            try:
                values = writer.fit(source.row(index))
            except Exception as err:
                if settings.on_error == "stop":
                    raise cannot_pack(source, index, err) from err
                left_out.append((source.name(index), reason_of(err)))
            else:
                writer.add(values)
            if (index - first) % _EVERY == 0:
                report(index - first)
        table = writer.finish()
    save_finished(job, table, left_out)
    report(behind - first)


def _pack_part_apart(source: Source, job: Job, settings: PackSettings, part: Planned,
                     report: Callable[[int], None]) -> None:  # fmt: skip
    try:
        _pack_part(source, job, part, settings, report)
    except OSError as err:
        raise _disk_error(err, job.folder) from err


def _in_this_process(source: Source, job: Job, todo: list[Planned], settings: PackSettings,
                     report: Callable[[int], None]) -> None:  # fmt: skip
    before = 0

    def of_part(rows: int) -> None:
        report(before + rows)

    for part in todo:
        _pack_part(source, job, part, settings, of_part)
        before += part[2] - part[1]
