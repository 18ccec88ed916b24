"""Starting a run: its folder, and ``run.json`` in it from the first moment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from hotlap.inject.run_script import script_of
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder

__all__ = ["new_run", "script_title"]


def script_title(command: Sequence[str]) -> str:
    """What the command's script is called: its file, its module, else the program."""
    return script_of(command) or (command[2] if len(command) > 2 and command[1] == "-m" else command[0])


def new_run(kind: str, command: Sequence[str], runs: Path | None) -> tuple[RunFolder, RunRecord]:
    """Make the run folder and say in it what was asked."""
    folder = RunFolder.create(script_title(command), runs)
    record = RunRecord(kind=kind, command=list(command), started=time.strftime("%Y-%m-%d %H:%M:%S"))
    folder.write("run.json", record)
    return folder, record
