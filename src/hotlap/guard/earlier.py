"""What earlier runs of the same command know: their roof, and how many steps a whole run makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hotlap.guard.status import Earlier
from hotlap.records.errors import RecordError
from hotlap.records.findings import Findings, Roof
from hotlap.records.guard import GuardRecord
from hotlap.records.machine import Machine
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder, list_runs

__all__ = ["look_back"]

MOST = 40
"""Runs looked at, newest first."""


def look_back(
    command: Sequence[str],
    root: Path | None,
    own: RunFolder,
    check: Callable[[RunFolder], None] | None = None,
    total: int | None = None,
) -> Earlier:
    """The newest roof, of a machine like this one, and the newest whole run of ``command``.

    A run that cannot be read tells nothing.

    ``check`` raises RecordError for a run that is not to be read. ``total``: steps that the user said it makes, which
    count for more than those of an earlier run.
    """
    roof: Roof | None = None
    steps: int | None = None
    for folder in list_runs(root)[: -MOST - 1 : -1]:
        if folder.path.resolve() == own.path:
            continue
        try:
            if check is not None:
                check(folder)
            run = folder.read("run.json", RunRecord)
            if run is None or run.command != list(command):
                continue
            here = roof is None and _alike(own.read("machine.json", Machine), folder.read("machine.json", Machine))
            findings = folder.read("findings.json", Findings) if here else None
            guarded = folder.read("guard.json", GuardRecord) if steps is None else None
        except RecordError:
            continue
        roof = findings.roof if findings is not None else roof
        if guarded is not None and run.status == "finished" and run.exit_code == 0 and guarded.steps > 0:
            steps = guarded.steps
        if roof is not None and steps is not None:
            break
    return Earlier(roof, steps if total is None else total)


def _alike(one: Machine | None, other: Machine | None) -> bool:
    """Whether a roof that was measured on the one says something of the other; of machines that are not known, yes."""
    if one is None or other is None:
        return True
    return (one.cpu, one.cores, [a.name for a in one.accelerators]) == (
        other.cpu, other.cores, [a.name for a in other.accelerators],
    )  # fmt: skip
