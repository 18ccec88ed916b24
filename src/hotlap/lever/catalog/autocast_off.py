"""Leave out autocast to a 16-bit type that this machine computes without units for it.

Evidence: The forward runs under torch.autocast in bf16 on a CPU without AVX512_BF16 or AMX or on a GPU before Ampere,
or in fp16 where that is slow.

Gain: Such a machine widens every operand, computes in fp32 and rounds again, often in code that nobody made fast. On a
CPU with AVX2 alone fp32 can take a small part of the time; on a GPU it depends on the layers. Memory for activations
doubles.

Runtime: A torch.autocast region in that type begins as one with enabled=False would. Regions in other types or on
another device, and those of code that torch.compile has compiled before Hotlap attached, stay as they are.

Source: enabled=False in the call of torch.autocast; bf16=False or --no-bf16 where a trainer was told.

Risk: Losses differ from the first step on, towards what fp32 gives. Code that counts on 16-bit outputs (a product with
weights that are bf16 themselves) fails, which ends the trial. On a machine that has the units autocast is faster: the
plan says so there, and a source patch does not.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "autocast-off"
TREATS = ("emulated-dtype",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = True

RULES = {"dtype": Rule(str, choices=("bf16", "fp16")), "device": Rule(str, choices=("cpu", "cuda"))}


def evidence(findings: Findings) -> Finding | None:
    """Compute in a type that is emulated."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Off for that type on that device, where autocast is what brings it in."""
    dtype = findings.script.model.get("autocast")
    if not dtype or not finding.evidence.get("autocast", True):
        return Refusal("The model's own weights are of that type: load or convert it in float32.")
    return [{"dtype": str(dtype), "device": "cpu" if findings.script.device == "cpu" else "cuda"}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """From a third of what the finding says (layers differ much) to all of it."""
    most = finding.seconds_per_step
    return bounded(findings, most / 3, most, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """A type that this machine lacks: where it is in hardware, autocast is the faster one."""
    wrong = check_setting(setting, RULES)
    if wrong is None and not machine.emulates(setting["dtype"], on_cpu=setting["device"] == "cpu"):
        dtype, device = setting["dtype"], setting["device"]
        return (
            f"dtype is {dtype!r}, which the {device} of this machine is not known to lack in hardware: autocast stays."
        )
    return wrong


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Begin regions of that type as disabled ones; what counts as a change is the first of them."""

    def torch_ready(torch: ModuleType) -> None:
        autocast = torch.amp.autocast_mode.autocast
        enter = autocast.__enter__
        emulated = torch.bfloat16 if setting["dtype"] == "bf16" else torch.float16
        met: list[bool] = []

        @functools.wraps(enter)
        def __enter__(self: Any) -> Any:
            if not self._enabled or self.fast_dtype is not emulated or self.device != setting["device"]:
                return enter(self)
            if not met:
                met.append(True)
                target.changed()
            self._enabled = False
            try:
                return enter(self)
            finally:
                self._enabled = True

        target.replace(autocast, "__enter__", __enter__)
        target.changed(-1)

    target.on_import("torch", torch_ready)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """``enabled=False`` where the region is made; advice where a trainer was told, or the line makes none."""
    where = place(*finding.where)
    if "autocast(" in where.text or where.text.startswith("with "):
        return [Edit("set_keyword", where.file, where.line, "autocast", keywords={"enabled": False})]
    off = "enabled=False, bf16=False, mixed_precision='no'"
    advice = f"Leave autocast to {setting['dtype']} off on this machine: {off}."
    return [Edit("advice", where.file, where.line, advice=advice)]
