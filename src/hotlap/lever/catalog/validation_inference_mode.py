"""Run validation without recording an autograd graph.

Evidence: Validation forwards record a graph that nobody uses (or run under no_grad, which still counts versions).

Gain: What recording takes in a validation forward (most where operations are many and small), and the memory of every
activation; over no_grad little is left to gain.

Runtime: While a validation is on, forwards of trained models in evaluation mode run under torch.inference_mode (or
no_grad, by the setting), and their outputs are handed back as normal tensors, so that later code may use them freely.

Source: @torch.inference_mode() (or with torch.no_grad():) on the validation function.

Risk: A validation that calls backward itself would fail: it is left alone when its inputs ask for gradients. A model
that keeps tensors made during validation gets normal copies of them. Some torch modules (TransformerEncoder) take
another kernel without gradients, so validation figures may differ in the last bits; training does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.nested import map_tensors
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import Tensor, nn

ID = "validation-inference-mode"
TREATS = ("validation-grad",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False

_RULES = {"mode": Rule(str, choices=("inference", "no_grad"))}


def evidence(findings: Findings) -> Finding | None:
    """A validation that records a graph."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """inference_mode, then no_grad."""
    return [{"mode": "inference"}, {"mode": "no_grad"}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """A tenth to a third of the validation (prior), at most what the finding says."""
    validation = findings.step_model.validation_s or finding.seconds_per_step
    return bounded(findings, 0.05 * validation, min(0.35 * validation, finding.seconds_per_step), "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """One of the two modes."""
    return check_setting(setting, _RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Forwards of models in evaluation mode, between the beginning and the end of a validation."""
    open_validations: list[bool] = []
    keeps_tensors: set[int] = set()
    counted: list[bool] = []

    def forward(module: nn.Module, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch

        if not open_validations or module.training or torch.is_inference_mode_enabled():
            return call(*args, **kwargs)
        if torch.is_grad_enabled() and _asks_for_gradients((args, kwargs)):
            return call(*args, **kwargs)
        inference = setting["mode"] == "inference" and id(module) not in keeps_tensors
        if not inference and not torch.is_grad_enabled():
            return call(*args, **kwargs)
        if not counted:
            counted.append(True)
            target.changed()
        if not inference:
            with torch.no_grad():
                return call(*args, **kwargs)
        with torch.inference_mode():
            out = call(*args, **kwargs)
        if _make_normal(module):
            keeps_tensors.add(id(module))
        return map_tensors(out, lambda t: t.clone() if t.is_inference() else t)

    target.on_validation(lambda: open_validations.append(True), open_validations.clear)
    target.around_forward(forward)


def _asks_for_gradients(values: Any) -> bool:
    found: list[bool] = []

    def look(tensor: Tensor) -> Tensor:
        found.append(tensor.requires_grad)
        return tensor

    map_tensors(values, look)
    return any(found)


def _make_normal(module: nn.Module) -> bool:
    """Replace tensors that the model kept from an inference forward by normal copies; whether there were any."""
    import torch

    found = False
    for part in module.modules():
        for held in (part._buffers, part.__dict__):
            for name, value in list(held.items()):
                if isinstance(value, torch.Tensor) and value.is_inference():
                    held[name] = value.clone()
                    found = True
    return found


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The validation function under the mode; where it trains too, its forward alone."""
    where = place(*finding.where)
    code = "@torch.inference_mode()" if setting["mode"] == "inference" else "@torch.no_grad()"
    return [Edit("decorate", where.file, where.line, target="validation", code=code)]
