"""Let the disk catch up behind the step.

Evidence: Log files are forced to disk (os.fsync) every few steps, and each call waits for the disk.

Gain: A call costs what the disk takes, often milliseconds; one call in half a second then serves for all of them. A
trial shows it only where it writes to the same disk: pass --scratch with a folder there, since memory has no fsync to
wait for.

Runtime: From the third time on that the same file is forced, os.fsync and os.fdatasync return at once, and a thread
calls them within half a second. What was written is in the file for every reader from the moment it was written, as
before, and a crash of the script loses nothing. Before any other file is forced, renamed, linked or removed, and at the
end, whatever is owed is paid first, so that nothing overtakes it. An error of the disk is raised at the next call. Each
such file, up to 32, is opened once more and stays open until it is removed or the script ends.

Source: Call os.fsync once a second, or only for checkpoints.

Risk: If the whole machine loses its power, up to half a second of log lines is lost that was safe before.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.owed_syncs import OwedSyncs
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "fsync-behind"
TREATS = ("logging-forced",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False

RULES = {"within_s": Rule(float, 0.01, 3.0)}
_BEFORE = ("rename", "replace", "link", "symlink", "remove", "unlink", "truncate", "_exit")
"""What must not overtake a write that was asked to be on disk."""


def evidence(findings: Findings) -> Finding | None:
    """Forced writes that spend their time in fsync."""
    found = first(findings, TREATS)
    return None if found is None or found.evidence.get("fsync_s") == 0.0 else found


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Half a second."""
    return [{"within_s": 0.5}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nearly all of the time inside fsync: the thread's calls take none of the step's, and only a file's first two are
    left (of 6.2 ms inside it in a step of 7.0 ms, 6.3 ms went away)."""
    inside = float(finding.evidence.get("fsync_s") or finding.seconds_per_step)
    return bounded(findings, 0.9 * inside, 1.0 * inside, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """A time."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Owe each sync to the thread; pay before anything that relies on it."""
    owed = OwedSyncs(setting["within_s"])

    def swap(owner: Any, name: str, new: Any) -> None:
        target.replace(owner, name, new)
        target.changed(-1)

    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            swap(os, name, _owing(getattr(os, name), owed, target))
    waiting = {getattr(os, n): _paid_before(getattr(os, n), owed) for n in _BEFORE if hasattr(os, n)}
    for name in ("supports_dir_fd", "supports_fd", "supports_follow_symlinks"):  # the library asks what a function can
        able: set[Any] = getattr(os, name, set())
        swap(os, name, able | {new for old, new in waiting.items() if old in able})
    for old, new in waiting.items():
        swap(os, old.__name__, new)
    target.at_exit(owed.finish)


def _owing(sync: Callable[[Any], None], owed: OwedSyncs, target: Target) -> Callable[[Any], None]:
    @functools.wraps(sync)
    def behind(fd: Any) -> None:
        if owed.owe(sync, fd):
            target.changed()
        else:
            owed.pay()
            sync(fd)

    return behind


def _paid_before(call: Callable[..., Any], owed: OwedSyncs) -> Callable[..., Any]:
    @functools.wraps(call)
    def paid(*args: Any, **kwargs: Any) -> Any:
        owed.pay()
        return call(*args, **kwargs)

    return paid


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: how often is the user's to say."""
    where = place(*finding.where)
    advice = (
        "Call os.fsync once a second, or only for checkpoints: what was written survives the script's crash anyway."
    )
    return [Edit("advice", where.file, where.line, target="os.fsync", advice=advice)]
