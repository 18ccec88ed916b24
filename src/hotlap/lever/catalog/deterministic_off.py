"""Let the device take its fastest algorithms where deterministic ones were asked for.

Evidence: torch.use_deterministic_algorithms(True) or torch.backends.cudnn.deterministic = True, on an accelerator.

Gain: Prior: from nothing to a fifth of compute, by layers (not measured here).

Runtime: Both switches are set back just before the first training forward.

Source: Remove both lines, or put them behind a --deterministic option.

Risk: Two runs with one seed no longer give the same bits. That is what the user asked for, so it is tried only where
changes of the training itself are allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

ID = "deterministic-off"
TREATS = ("cudnn-deterministic",)
PRESERVES = "goal"
CONFLICTS = ()
NUMERIC = True
DEVICE = "cuda"


def evidence(findings: Findings) -> Finding | None:
    """Deterministic algorithms, on a device."""
    return first(findings, TREATS) if findings.script.device != "cpu" else None


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Both switches off."""
    return [{}] if machine.has_gpu else Refusal("Deterministic algorithms cost time on a GPU, and torch sees none.")


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Prior: nothing to twice what the finding says."""
    return bounded(findings, 0.0, 2.0 * finding.seconds_per_step, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set, and a GPU has to be there."""
    wrong = check_setting(setting, {})
    return wrong or (None if machine.has_gpu else "Deterministic algorithms cost time on a GPU, and torch sees none.")


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Once, after the script's own settings."""
    done: list[bool] = []

    def switch(module: nn.Module) -> None:
        import torch

        if done:
            return
        done.append(True)
        cudnn = torch.backends.cudnn
        if cudnn.deterministic:
            knob = Knob(lambda: cudnn.deterministic, lambda value: setattr(cudnn, "deterministic", value))
            target.replace(knob, "value", False)
        if torch.are_deterministic_algorithms_enabled():
            target.replace(Knob(_mode, _set_mode), "value", (False, False))

    target.on_model(switch)


def _mode() -> tuple[bool, bool]:
    import torch

    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _set_mode(value: Any) -> None:
    import torch

    torch.use_deterministic_algorithms(value[0], warn_only=value[1])


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: the lines stand wherever the script sets up."""
    where = place(*finding.where)
    advice = (
        "Remove torch.use_deterministic_algorithms(True) and torch.backends.cudnn.deterministic = True, or put them "
        "behind a --deterministic option."
    )
    return [Edit("advice", where.file, where.line, advice=advice)]
