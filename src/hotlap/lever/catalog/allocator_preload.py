"""Start the training with another memory allocator (tcmalloc, jemalloc) in place of the C library's.

Evidence: Many page faults per step: freed tensors go back to the system, and the next step's memory is faulted in and
cleared page by page.

Gain: The kernel's time for those faults, and what the caches lose to pages being cleared: these allocators keep what
was freed and hand it out again. It grows with the size and number of the tensors that a step makes and frees. The lever
allocator goes after the same faults with the C library's own means; a trial tells which does better.

Runtime: LD_PRELOAD in the environment that the command is started with, before what it holds already. The lever has
taken hold where the library is mapped into the training process. Libraries that are not installed are not offered.

Source: Start the script with LD_PRELOAD=/path/of/libtcmalloc.so.

Risk: Every program that the script starts runs with that allocator. It keeps more memory than it uses. Results do not
change.
"""

from __future__ import annotations

import os
import sys

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "allocator-preload"
TREATS = ("page-faults",)
PRESERVES = "bits"
CONFLICTS = ("allocator",)
NUMERIC = True
PROCESS_WIDE = True
AT_LAUNCH = True

RULES = {"library": Rule(str)}
_VARIABLE = "LD_PRELOAD"


def evidence(findings: Findings) -> Finding | None:
    """Page faults, on a CPU."""
    return first(findings, TREATS) if findings.script.device == "cpu" else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Each allocator that is installed."""
    if machine.system != "Linux":
        return Refusal(f"Libraries are not preloaded this way on {machine.system}.")
    if not machine.allocators:
        return Refusal("Neither tcmalloc nor jemalloc is installed (Debian: libtcmalloc-minimal4, libjemalloc2).")
    return [{"library": path} for path in machine.allocators]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """From half of what the faults are taken to cost to all of it."""
    most = finding.seconds_per_step
    return bounded(findings, 0.5 * most, most, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """A library that this machine has."""
    wrong = check_setting(setting, RULES)
    if wrong is None and setting["library"] not in machine.allocators:
        known = ", ".join(machine.allocators) or "none"
        return f"library is {setting['library']!r}, which is no allocator found here (found: {known})."
    return wrong


def environment(setting: Setting) -> dict[str, str]:
    """The variable, with what the user preloads behind the allocator."""
    library, before = setting["library"], os.environ.get(_VARIABLE, "")
    if library in before.replace(":", " ").split():
        return {_VARIABLE: before}
    return {_VARIABLE: f"{library}:{before}" if before else library}


def apply(target: Target, setting: Setting) -> None:
    """Look whether the library is there: a dynamic linker that cannot load it says so, and goes on without."""
    if sys.platform != "linux":
        return
    library = os.path.realpath(setting["library"])
    with open("/proc/self/maps", encoding="utf-8") as file:
        mapped = {line.rstrip("\n").partition("/")[2] for line in file}
    if library.removeprefix("/") in mapped:
        target.changed()
    else:
        target.unfit(
            f"{setting['library']} is not in the process: it was not started with {_VARIABLE}, or cannot load it"
        )


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: the variable in front of the command."""
    where = place(*finding.where)
    advice = f"Start the script with {_VARIABLE}={setting['library']}."
    return [Edit("advice", where.file, where.line, advice=advice)]
