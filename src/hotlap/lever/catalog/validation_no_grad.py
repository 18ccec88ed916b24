"""Run validation without recording an autograd graph.

Evidence: Validation forwards record a graph that nobody uses.

Gain: What recording takes in a validation forward (most where operations are many and small), and the memory of every
activation.

Runtime: While a validation is on, forwards of trained models in evaluation mode run under torch.no_grad. That has
nearly all of the gain of torch.inference_mode, whose tensors no later backward may use: a table that the model makes in
validation and keeps would end the training. Models that are trained in evaluation mode (a backward has followed their
calls in that mode), and what is called with batches of a loader that is trained on, keep their gradients.

Source: @torch.no_grad() on the validation function, or with torch.no_grad(): around the model's call.

Risk: A validation that calls backward itself would fail: it is left alone when its inputs ask for gradients. What a
model computes from its weights in validation and keeps for the training carries no gradient. Some torch modules
(TransformerEncoder) take another kernel without gradients, so validation figures may differ in the last bits; training
does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.nested import map_tensors
from hotlap.lever.trained_in_eval import TrainedInEval
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import Tensor, nn

ID = "validation-no-grad"
TREATS = ("validation-grad",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False


def evidence(findings: Findings) -> Finding | None:
    """A validation that records a graph."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Nothing to choose."""
    return [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """A tenth to a third of the validation (prior), at most what the finding says."""
    validation = findings.step_model.validation_s or finding.seconds_per_step
    return bounded(findings, 0.05 * validation, min(0.35 * validation, finding.seconds_per_step), "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """No settings."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Forwards of models in evaluation mode, between the beginning and the end of a validation."""
    trained = TrainedInEval(target)
    open_validations: list[bool] = []
    counted: list[bool] = []

    def forward(module: nn.Module, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch

        if module.training or not torch.is_grad_enabled():
            return call(*args, **kwargs)
        if trained.called(module) or not open_validations:
            return call(*args, **kwargs)
        if _asks_for_gradients((args, kwargs)):
            return call(*args, **kwargs)
        if not counted:
            counted.append(True)
            target.changed()
        with torch.no_grad():
            return call(*args, **kwargs)

    target.on_validation(lambda: open_validations.append(True), open_validations.clear)
    target.around_forward(forward)


def _asks_for_gradients(values: Any) -> bool:
    found: list[bool] = []

    def look(tensor: Tensor) -> Tensor:
        found.append(tensor.requires_grad)
        return tensor

    map_tensors(values, look)
    return any(found)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """The validation function under no_grad; where it trains too, its forward alone."""
    where = place(*finding.where)
    return [Edit("decorate", where.file, where.line, target="validation", code="@torch.no_grad()")]
