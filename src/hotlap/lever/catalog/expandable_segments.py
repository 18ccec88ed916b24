"""Let the GPU's memory segments grow in place.

Evidence: torch's allocator asks the CUDA driver for memory in the midst of training, as it does where batches vary in
size: no cached segment fits, and a new one is made, or all of them are given back first.

Gain: Prior: from nothing to what the requests are taken to cost (not measured here).

Runtime: PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before torch 2.9) in the environment that
the command is started with, beside what it holds already. A script that sets the variable itself keeps its own value,
and the lever ends without effect.

Source: Start the script with PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before torch 2.9).

Risk: CUDA tensors that are shared between processes need more from the driver. Results should not change; that they are
equal bit for bit was not measured here.
"""

from __future__ import annotations

import os
import re
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn

ID = "expandable-segments"
TREATS = ("device-allocations",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = False
DEVICE = "cuda"
IDLE_ON_CPU = True
AT_LAUNCH = True

_OPTION = "expandable_segments"
_NEW, _OLD = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"
"""Older torch knows the second alone; newer torch warns of it."""
_SINCE = (2, 9)


def evidence(findings: Findings) -> Finding | None:
    """Requests to the driver, on a device."""
    return first(findings, TREATS) if findings.script.device != "cpu" else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """On, where a driver can."""
    wrong = _impossible(machine)
    if wrong is not None:
        return Refusal(wrong)
    if finding.evidence.get("expandable"):
        return Refusal("Segments grow in place already.")
    return [{}]


def _impossible(machine: Machine) -> str | None:
    if not machine.has_gpu:
        return "Segments of CUDA memory need an NVIDIA GPU, and torch sees none."
    return None if machine.system == "Linux" else f"The CUDA driver has no such segments on {machine.system}."


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nothing to what the finding says."""
    return bounded(findings, 0.0, finding.seconds_per_step, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set, and a GPU has to be there."""
    return check_setting(setting, {}) or _impossible(machine)


def environment(setting: Setting) -> dict[str, str]:
    """The option behind the user's own ones, in the variables that they set."""
    found = {}
    for name in [n for n in (_NEW, _OLD) if os.environ.get(n)] or [_known()]:
        options = [o for o in os.environ.get(name, "").split(",") if o and not o.strip().startswith(_OPTION)]
        found[name] = ",".join([*options, f"{_OPTION}:True"])
    return found


def _known() -> str:
    """The name that the torch installed here knows; torch itself is not imported for it."""
    try:
        numbers = re.match(r"(\d+)\.(\d+)", version("torch"))
    except PackageNotFoundError:
        return _OLD
    return _NEW if numbers and (int(numbers[1]), int(numbers[2])) >= _SINCE else _OLD


def apply(target: Target, setting: Setting) -> None:
    """Look, when training begins on the device, whether the option stands."""
    done: list[bool] = []

    def look(module: nn.Module) -> None:
        import torch

        if done:
            return
        done.append(True)
        options = [value for name in (_NEW, _OLD) if (value := os.environ.get(name))]
        if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            target.unfit("The training does not run on a CUDA device.")
        elif options and all(f"{_OPTION}:True" in value.replace(" ", "") for value in options):
            target.changed()
        else:
            target.unfit(f"The script sets the allocator's options itself ({' '.join(options) or 'to nothing'}).")

    target.on_model(look)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: the variable in front of the command."""
    where = place(*finding.where)
    advice = f"Start the script with {_NEW}={_OPTION}:True ({_OLD} before torch 2.9)."
    return [Edit("advice", where.file, where.line, advice=advice)]
