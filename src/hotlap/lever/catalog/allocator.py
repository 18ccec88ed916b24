"""Let the C library keep freed memory for the next step.

Evidence: Many page faults per step: freed tensors go back to the system, and the next step's memory is faulted in and
cleared page by page.

Gain: The kernel's time for those faults, and what the caches lose to pages being cleared. It grows with the size and
number of the tensors that a step makes and frees, and counts most where the computing done with them is short, as in
bf16.

Runtime: glibc's mallopt: large blocks come from the heap rather than from a mapping of their own (M_MMAP_MAX), and the
top of the heap is kept (M_TRIM_THRESHOLD, M_TOP_PAD). Other C libraries are left alone.

Source: Start the script with MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2147483647 MALLOC_TOP_PAD_=67108864.

Risk: The process keeps the memory of its largest moment, and the heap can fragment. Results do not change.
"""

from __future__ import annotations

import ctypes
import sys

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.knob import Knob
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "allocator"
TREATS = ("page-faults",)
PRESERVES = "bits"
CONFLICTS = ("allocator-preload",)
NUMERIC = True
PROCESS_WIDE = True

RULES = {"top_pad_bytes": Rule(int, 0, 1 << 30)}
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
"""Parameters of mallopt, malloc.h of glibc."""
_LARGEST = 2**31 - 1
_MMAP_MAX_DEFAULT, _TRIM_DEFAULT = 65536, 128 << 10
"""glibc's DEFAULT_MMAP_MAX and DEFAULT_TRIM_THRESHOLD."""


def evidence(findings: Findings) -> Finding | None:
    """Page faults, on a CPU."""
    return first(findings, TREATS) if findings.script.device == "cpu" else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Keep everything, and take 64 MiB at a time."""
    if machine.system != "Linux":
        return Refusal("Only glibc's allocator has these settings.")
    return [{"top_pad_bytes": 64 << 20}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """From half of what the faults are taken to cost to all of it."""
    most = finding.seconds_per_step
    return bounded(findings, 0.5 * most, most, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """A size; and Linux."""
    wrong = check_setting(setting, RULES)
    if wrong is None and machine.system != "Linux":
        return f"{machine.system} does not use glibc's allocator."
    return wrong


def environment(setting: Setting) -> dict[str, str]:
    """None needed: mallopt works at run time."""
    return {}


class _Malloc:
    """What was set last; glibc cannot be asked."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(None)
        self.kept: tuple[int, int, int] = (_MMAP_MAX_DEFAULT, _TRIM_DEFAULT, _TRIM_DEFAULT)

    def get(self) -> tuple[int, int, int]:
        return self.kept

    def set(self, values: tuple[int, int, int]) -> None:
        for parameter, value in zip((_MMAP_MAX, _TRIM_THRESHOLD, _TOP_PAD), values, strict=True):
            if self.library.mallopt(parameter, value) != 1:
                raise OSError(f"mallopt({parameter}, {value}) was refused")
        self.kept = values


def apply(target: Target, setting: Setting) -> None:
    """At once: the model's first tensors already profit."""
    if sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        return
    malloc = _Malloc()
    target.replace(Knob(malloc.get, malloc.set), "value", (0, _LARGEST, setting["top_pad_bytes"]))


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: the variables in front of the command."""
    where = place(*finding.where)
    values = f"MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_={_LARGEST} MALLOC_TOP_PAD_={setting['top_pad_bytes']}"
    return [Edit("advice", where.file, where.line, advice=f"Start the script with {values} (glibc).")]
