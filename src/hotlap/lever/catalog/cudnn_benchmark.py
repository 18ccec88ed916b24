"""Let cuDNN try its convolution algorithms out and keep the fastest.

Evidence: Convolutions take much of the compute on an NVIDIA GPU, cuDNN chooses by heuristics, and inputs have one
shape.

Gain: By shapes: nothing to a fifth of the convolutions' time (prior; not measured here).

Runtime: torch.backends.cudnn.benchmark = True just before the first training forward.

Source: torch.backends.cudnn.benchmark = True at the start.

Risk: Each new shape is tried out anew, which takes longer than the step: not for inputs of varying size. Which
algorithm wins can differ from run to run, and so can the last bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.knob import Knob
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn

ID = "cudnn-benchmark"
TREATS = ("cudnn-benchmark",)
PRESERVES = "maths"
CONFLICTS = ("trim-padding",)
NUMERIC = True
DEVICE = "cuda"

_STARTUP_S = 5.0
"""Algorithms tried for some dozens of layers, three convolutions each (forward, and two in backward). Prior."""


def evidence(findings: Findings) -> Finding | None:
    """Convolutions by heuristics, on a device."""
    return first(findings, TREATS) if findings.script.device != "cpu" else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """On, where one shape was seen."""
    if not machine.has_gpu:
        return Refusal("cuDNN needs an NVIDIA GPU, and torch sees none.")
    shapes = finding.evidence.get("shapes")
    if isinstance(shapes, int) and shapes > 1:
        return Refusal(f"Inputs came in {shapes} shapes, and each would be tried out anew.")
    return [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Prior: nothing to twice what the finding says."""
    return bounded(findings, 0.0, 2.0 * finding.seconds_per_step, "prior", _STARTUP_S)


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set, and a GPU has to be there."""
    wrong = check_setting(setting, {})
    return wrong or (None if machine.has_gpu else "cuDNN needs an NVIDIA GPU, and torch sees none.")


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Raise the switch once, after the script's own settings."""
    done: list[bool] = []

    def switch(module: nn.Module) -> None:
        import torch

        cudnn = torch.backends.cudnn
        if not done and not cudnn.benchmark:
            knob = Knob(lambda: cudnn.benchmark, lambda value: setattr(cudnn, "benchmark", value))
            target.replace(knob, "value", True)
        done.append(True)

    target.on_model(switch)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The switch, before the forward."""
    where = place(*finding.where)
    return [Edit("insert_before", where.file, where.line, code="torch.backends.cudnn.benchmark = True")]
