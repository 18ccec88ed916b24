"""Let the CPU treat numbers too small for the normal range as zero.

Evidence: A sample of weights, gradients or optimizer state holds denormal numbers (below 1.2e-38 in fp32), at which a
CPU takes a slow path.

Gain: A CPU takes many times as long for an operation on denormals as for one on normal numbers. What share of the
operands they are decides: nearly everything where a layer's numbers have become so small, nothing where there are few.

Runtime: torch.set_flush_denormal(True) before the script's first line. The mode belongs to a thread and is inherited by
threads that are started later, so that it has to come before torch's own threads do.

Source: torch.set_flush_denormal(True) right after import torch.

Risk: Numbers below 1.2e-38 become zero, also as the operands of an operation; a script that relies on them (products of
many probabilities that are not taken in logarithms) computes something else.
"""

from __future__ import annotations

from types import ModuleType

from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.knob import Knob
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "flush-denormals"
TREATS = ("denormals",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = True
PROCESS_WIDE = True


def evidence(findings: Findings) -> Finding | None:
    """Denormals, on a CPU."""
    return first(findings, TREATS) if findings.script.device == "cpu" else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """On or not at all."""
    return [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """From a tenth of what the finding says (the slow path differs much between CPUs) to all of it."""
    most = finding.seconds_per_step
    return bounded(findings, 0.1 * most, most, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """At once, where the CPU can."""

    def torch_ready(torch: ModuleType) -> None:
        before = _flushes(torch)
        if before or not torch.set_flush_denormal(True):
            return  # on already, or a CPU without the mode
        torch.set_flush_denormal(False)
        target.replace(Knob(lambda: before, torch.set_flush_denormal), "value", True)

    target.on_import("torch", torch_ready)


def _flushes(torch: ModuleType) -> bool:
    """Whether this thread flushes already: torch cannot be asked, but a denormal can."""
    return bool(torch.tensor(1e-40).mul(1.0).view(torch.int32).item() == 0)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The call at the start."""
    where = place(*finding.where)
    advice = "Call torch.set_flush_denormal(True) right after import torch, before anything is computed."
    return [Edit("advice", where.file, where.line, advice=advice)]
