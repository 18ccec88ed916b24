"""Starting a run: its folder, and ``run.json`` in it from the first moment."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hotlap.inject.run_script import name_of
from hotlap.machine.origin import read_origin
from hotlap.records.plan import Move
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder

__all__ = ["new_record", "new_run", "status_of"]


@contextmanager
def status_of(run: RunRecord) -> Iterator[None]:
    """Say in the record how the body ended: finished, interrupted (Ctrl-C) or failed. Whatever was raised goes on."""
    try:
        yield
    except KeyboardInterrupt:
        run.status = "interrupted"
        raise
    except BaseException:
        run.status = "failed"
        raise
    run.status = "finished"


def new_record(kind: str, command: Sequence[str], moves: Sequence[Move] = ()) -> RunRecord:
    """What was asked, when, and what it started with."""
    started = time.strftime("%Y-%m-%d %H:%M:%S")
    return RunRecord(kind=kind, command=list(command), started=started, origin=read_origin(command, moves))


def new_run(
    kind: str, command: Sequence[str], runs: Path | None, moves: Sequence[Move] = ()
) -> tuple[RunFolder, RunRecord]:
    """Make the run folder and say in it what was asked. ``moves``: what is applied to the command."""
    folder = RunFolder.create(name_of(command), runs)
    record = new_record(kind, command, moves)
    folder.write("run.json", record)
    return folder, record
