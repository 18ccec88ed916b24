"""Map array files that are loaded again and again, so that only the part that is used is read.

Evidence: The step waits while numpy.load reads all of an array file for every sample.

Gain: A mapping costs its set-up and then the pages that are touched; reading costs the size of the file over the speed
of memory or disk, each time. So it grows with the size of the file beside the part of it that is used.

Runtime: From the second load of the same .npy file on, numpy.load(path) gives an array over a private mapping
(mmap_mode="c"): the same numbers, and writing to it changes nobody else's. Files written since the start, small ones,
calls with other arguments and arrays of objects are loaded as before. numpy.save over an array file writes a new file
beside it, which then takes its place: what is mapped stays what it was.

Source: numpy.load(path, mmap_mode="r") once, kept, and indexed per sample.

Risk: A mapped file that is truncated in place while it is used, by anything else than numpy.save, ends the process;
files that the run itself has written are therefore never mapped. numpy.load no longer gives an array that owns its
memory (resize in place refuses).
"""

from __future__ import annotations

from types import ModuleType

from hotlap.lever.array_maps import mapping_load, sparing_save
from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.used_mark import watch_mark
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "mmap-arrays"
TREATS = ("whole-file-read",)
PRESERVES = "bits"
CONFLICTS = ("cache-decode",)
NUMERIC = False

RULES = {"min_bytes": Rule(int, 4096)}


def evidence(findings: Findings) -> Finding | None:
    """An array that is read whole for each sample."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Files from 64 KiB on: below, a read costs less than a mapping and its page faults."""
    if finding.evidence.get("op") == "torch.load":
        return Refusal("The array is read by torch.load, whose result may be written to and shared.")
    return [{"min_bytes": 1 << 16}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Most of the reading, if a small part of the array is used."""
    return bounded(findings, 0.0, 0.95 * finding.seconds_per_step, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """Types and range."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Replace numpy.load and numpy.save. What counts as a change is a file mapped, in whatever process."""
    used = watch_mark(target, ID)

    def install(numpy: ModuleType) -> None:
        target.replace(numpy, "load", mapping_load(numpy, setting["min_bytes"], used))
        target.replace(numpy, "save", sparing_save(numpy, setting["min_bytes"]))
        target.changed(-2)

    target.on_import("numpy", install)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: where the mapping is kept is the user's decision."""
    where = place(*finding.where)
    advice = 'Load once, in __init__ or at first use, with numpy.load(path, mmap_mode="r"), and index that here.'
    return [Edit("advice", where.file, where.line, advice=advice)]
