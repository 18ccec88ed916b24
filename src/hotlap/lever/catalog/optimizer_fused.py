"""Update all parameters in one call, in place of one by one.

Evidence: The optimizer takes a visible share of the step and loops over many small tensors.

Gain: On an accelerator fewer launches; on a CPU there are none to spare and the arithmetic stays, so expect little
there.

Runtime: Just before its first step, the optimizer's groups get fused=True or foreach=True. An optimizer that has state
already (a resumed one) is left alone.

Source: torch.optim.AdamW(..., fused=True).

Risk: On a CPU a fused optimizer trains wrong weights, without an error, if the model becomes channels-last after its
state exists, or resumes from a checkpoint in the other layout: never together with channels-last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.lever.knob import Knob
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch.optim import Optimizer

ID = "optimizer-fused"
TREATS = ("optimizer-loop",)
PRESERVES = "maths"
CONFLICTS = ("channels-last",)
NUMERIC = True

RULES = {"impl": Rule(str, choices=("fused", "foreach"))}
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
_PLAIN_RATE = ("Adam", "AdamW")
"""Their foreach form takes no learning rate that is a tensor, unless they are capturable."""
_FOREACH = (*_FUSED, "NAdam", "RAdam", "RMSprop", "Rprop", "Adamax", "ASGD", "Adadelta")


def evidence(findings: Findings) -> Finding | None:
    """An optimizer that updates tensor by tensor."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """fused first, then foreach."""
    optimizers = findings.script.optimizers
    names = {str(o.get("class", "")).rpartition(".")[2] for o in optimizers}
    if any(o.get("fused") or o.get("foreach") for o in optimizers):
        return Refusal("The optimizer is fused or foreach already.")
    known = [n for n in names if n in _FOREACH]
    if optimizers and not known:
        return Refusal(f"{', '.join(sorted(names))} has neither a fused nor a foreach form.")
    fused_safe = not (findings.script.device == "cpu" and findings.script.model.get("channels_last"))
    fused = [{"impl": "fused"}] if fused_safe and (not known or any(n in _FUSED for n in known)) else []
    return [*fused, {"impl": "foreach"}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Half of the optimizer's phase to all of it on a CPU, where tensors are updated one by one; less on a GPU.

    Prior: the calls hold up what follows them, too.
    """
    share = findings.phases.get("optimizer") or finding.share
    phase_s = share * findings.throughput.step_s
    on_cpu = findings.script.device == "cpu"
    return bounded(findings, (0.5 if on_cpu else 0.2) * phase_s, (1.0 if on_cpu else 0.7) * phase_s, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """fused or foreach."""
    return check_setting(setting, RULES)


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Switch each supported optimizer just before its first step."""
    impl, other = ("fused", "foreach") if setting["impl"] == "fused" else ("foreach", "fused")

    def switch(optimizer: Optimizer) -> None:
        if not _supported(optimizer, impl):
            return
        before = [(place.get(impl), place.get(other)) for place in _places(optimizer)]

        def write(optimizer: Optimizer, value: Any) -> None:
            for number, held in enumerate(_places(optimizer)):
                old, old_other = before[number if number < len(before) else 0]  # a later group took the defaults over
                held[impl] = True if value is True else old
                held[other] = False if value is True else old_other

        target.replace(Knob.of(optimizer, None, write), "value", True)

    target.on_optimizer(switch)


def _places(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Where it says how it updates: its defaults, which later groups take over, and each group."""
    return [optimizer.defaults, *optimizer.param_groups]


def _supported(optimizer: Optimizer, impl: str) -> bool:
    """A plain torch optimizer without state, not told otherwise, all of whose parameters the form can take."""
    from torch import Tensor

    kind = type(optimizer)
    names = _FUSED if impl == "fused" else _FOREACH
    if not kind.__module__.startswith("torch.optim") or kind.__name__ not in names or impl not in optimizer.defaults:
        return False
    if optimizer.state or optimizer.defaults.get("differentiable"):
        return False
    for group in optimizer.param_groups:
        if group.get("fused") or group.get("foreach") or group.get("differentiable"):
            return False
        tensor_rate = isinstance(group.get("lr"), Tensor) and not group.get("capturable")
        if kind.__name__ in _PLAIN_RATE and impl == "foreach" and tensor_rate:
            return False
        for p in group["params"]:
            if not p.is_floating_point() or p.is_sparse or (impl == "fused" and not p.is_contiguous()):
                return False
            if p.grad is not None and (p.grad.is_sparse or (impl == "fused" and p.grad.stride() != p.stride())):
                return False
    return True


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """A keyword of each optimizer."""
    keywords = {setting["impl"]: True}
    places = [place(where) for where in finding.where] or [place()]
    return [Edit("set_keyword", p.file, p.line, target="optimizer", keywords=dict(keywords)) for p in places]
