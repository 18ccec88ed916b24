"""Multiply fp32 matrices in TF32 on NVIDIA's tensor cores.

Evidence: Compute runs in fp32 on an NVIDIA GPU of the Ampere generation or later.

Gain: The data sheets name eight times the fp32 rate on an A100 and twice on an RTX A6000, for matrix products alone; on
consumer chips (RTX 3090, 4090) TF32 is no faster than fp32. Convolutions use TF32 by default already.

Runtime: torch.set_float32_matmul_precision("high") just before the first training forward.

Source: torch.set_float32_matmul_precision("high") at the start.

Risk: Products are rounded to 10 bits of mantissa, sums stay in fp32. Quality is proved over seeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import of_compute
from hotlap.lever.knob import Knob
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn

ID = "tf32"
TREATS = ("precision",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = True
DEVICE = "cuda"


def _impossible(machine: Machine) -> str | None:
    """Why this machine has no TF32."""
    if not machine.has_gpu:
        return "TF32 is a type of NVIDIA's GPUs, and torch sees none."
    old = next((a for a in machine.accelerators if not a.tf32), None)
    if old is None:
        return None
    return f"{old.name} (capability {old.capability}) has no TF32: it needs an NVIDIA GPU of capability 8.0 or later."


def evidence(findings: Findings) -> Finding | None:
    """Compute in fp32, on a device."""
    return first(findings, TREATS) if findings.script.device != "cpu" else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """On or not at all."""
    reason = _impossible(machine)
    return Refusal(reason) if reason else [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Prior: nothing to 1.5 times on the compute part; convolutions have it already."""
    share = findings.script.model.get("conv_frac") or 0.0
    return of_compute(findings, 1.0, 1.5 if share < 0.5 else 1.1)


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set, and the GPU has to have it."""
    return check_setting(setting, {}) or _impossible(machine)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Raise the switch once, after the script's own settings; one that is as fast already is left."""
    done: list[bool] = []

    def switch(module: nn.Module) -> None:
        if not done:
            _raise(target)
        done.append(True)

    target.on_model(switch)


def _raise(target: Target) -> None:
    """By the switch that the script uses: torch's older one refuses to answer where its newer one was set."""
    import torch

    matmul: Any = torch.backends.cuda.matmul
    if getattr(matmul, "fp32_precision", None) == "tf32":
        return
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:
        target.replace(Knob(lambda: matmul.fp32_precision, _newer), "value", "tf32")
        return
    if before == "highest":
        target.replace(Knob(lambda: before, torch.set_float32_matmul_precision), "value", "high")


def _newer(precision: str) -> None:
    import torch

    torch.backends.cuda.matmul.fp32_precision = precision


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The call, before the forward."""
    where = place(*finding.where)
    code = 'torch.set_float32_matmul_precision("high")'
    return [Edit("insert_before", where.file, where.line, code=code)]
