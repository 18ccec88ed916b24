"""Let gradients go instead of writing zeros into them.

Evidence: Gradients are the same tensors from step to step, and zeroing them takes a visible part of the step.

Gain: The zero-grad phase, and in backward an addition per gradient. It counts where parameters are many and steps
short.

Runtime: zero_grad(set_to_none=False) of optimizers drops the gradients instead. A parameter that then gets no gradient
before the optimizer's step has its zeros written after all, so that momentum and weight decay go on as before. Sparse
gradients stay, and those that the script holds itself or sees as a part of a larger tensor.

Source: optimizer.zero_grad(set_to_none=True), the default, by hand: a parameter that gets no gradient in a step is then
passed over, its momentum and weight decay too.

Risk: A script that reads a gradient between zero_grad and backward finds None there; so does one that keeps ``.data``
of its gradients, which no longer changes.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import check_setting
from hotlap.lever.closures import behind_closure
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.seen_gradients import seen_elsewhere
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

ID = "zero-grad-none"
TREATS = ("zero-grad",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = False


def evidence(findings: Findings) -> Finding | None:
    """Gradients zeroed in place."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """On or not at all."""
    return [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Nothing to twice the zero-grad phase: what backward saves is of the same size."""
    return bounded(findings, 0.0, 2.0 * finding.seconds_per_step, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Replace the optimizers' zero_grad, and see to parameters without a gradient before each step."""
    import weakref

    dropped: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
    used: list[bool] = []

    def ready(torch: ModuleType) -> None:
        kind = torch.optim.Optimizer
        real = kind.zero_grad

        def zero_grad(self: Optimizer, set_to_none: bool = True) -> None:
            if set_to_none:
                dropped[self] = []
                real(self, set_to_none=True)
                return
            owed = {id(p) for p in dropped.get(self, ())}  # by a second call before the step
            own = [p for group in self.param_groups for p in group["params"]]
            stay = seen_elsewhere(own)
            dropped[self] = [p for p in own if (p.grad is not None or id(p) in owed) and id(p) not in stay]
            for p in dropped[self]:
                p.grad = None
            if dropped[self] and not used:
                used.append(True)
                target.changed()
            real(self, set_to_none=False)

        real_of_module = torch.nn.Module.zero_grad

        def zero_grad_of_module(self: nn.Module, set_to_none: bool = True) -> None:
            real_of_module(self, set_to_none)
            if set_to_none:  # the script lets them go itself: the step is to pass over them
                gone = {id(p) for p in self.parameters()}
                for optimizer, held in dropped.items():
                    dropped[optimizer] = [p for p in held if id(p) not in gone]

        target.replace(kind, "zero_grad", zero_grad)
        target.replace(torch.nn.Module, "zero_grad", zero_grad_of_module)
        target.changed(-2)

    def step(optimizer: Optimizer, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch

        def write_zeros() -> None:
            for p in dropped.pop(optimizer, ()):
                if p.grad is None:
                    p.grad = torch.zeros_like(p)

        write_zeros()
        given = behind_closure(write_zeros, target, args, kwargs)  # zero_grad is often called in the closure
        return call(*args, **kwargs) if given is None else call(*given[0], **given[1])

    target.on_import("torch", ready)
    target.around_step(step)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice: whether each parameter gets a gradient in each step is not in the findings."""
    where = place(*finding.where)
    advice = (
        "Leave set_to_none=False out of zero_grad where every parameter gets a gradient in each step: one without is "
        "then passed over by the optimizer, where with zeros its momentum and weight decay go on."
    )
    return [Edit("advice", where.file, where.line, advice=advice)]
