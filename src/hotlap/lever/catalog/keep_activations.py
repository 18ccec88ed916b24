"""Keep activations instead of computing them a second time in the backward.

Evidence: torch.utils.checkpoint is used in the forward, and more than half of the memory was never used.

Gain: The second forward of what is checkpointed goes away: up to one forward in two, while the backward stays as it is.

Runtime: torch.utils.checkpoint.checkpoint calls its function and nothing else. Left as it is where the second forward
would be seen later: modules in training mode that hold more than parameters (BatchNorm, spectral norm, a codebook),
functions that use what is no module, random numbers that are drawn anew. A script that imported the function into its
own names before Hotlap attached keeps the old one.

Source: Call the function without checkpoint(...).

Risk: Memory grows by the activations that were not kept. A training that then runs out of memory ends the trial, and
the lever is put back; a later, larger batch can still do so.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hotlap.lever.checks import check_setting
from hotlap.lever.computed_twice import told_by_state
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

ID = "keep-activations"
TREATS = ("activation-checkpointing",)
PRESERVES = "bits"
CONFLICTS = ()
NUMERIC = True

_OWN = ("use_reentrant", "context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop")
"""Keywords of checkpoint itself; the others are the function's."""


def evidence(findings: Findings) -> Finding | None:
    """Activations computed twice."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """On or not at all."""
    return [{}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Half of the second forward to all of it."""
    most = finding.seconds_per_step
    return bounded(findings, 0.5 * most, most, "modelled")


def check(setting: Setting, machine: Machine) -> str | None:
    """There is nothing to set."""
    return check_setting(setting, {})


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Replace checkpoint; what counts as a change is its first use."""

    def ready(module: ModuleType) -> None:
        from torch.compiler import is_compiling

        used: list[bool] = []
        real = module.checkpoint

        def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("context_fn") is not None or is_compiling():
                return real(function, *args, **kwargs)  # selective: what it keeps is the script's own choice
            given = {k: v for k, v in kwargs.items() if k not in _OWN}
            why = _told_by_keywords(args, kwargs) or told_by_state(function, args, given)
            if why is not None:
                target.unfit(why)
                return real(function, *args, **kwargs)
            if not used:
                used.append(True)
                target.changed()
            return function(*args, **given)

        target.replace(module, "checkpoint", checkpoint)
        target.changed(-1)

    target.on_import("torch.utils.checkpoint", ready)


def _told_by_keywords(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    import torch

    if not kwargs.get("preserve_rng_state", True):
        return "the second forward draws other random numbers (preserve_rng_state=False)"
    asked = any(isinstance(a, torch.Tensor) and a.requires_grad for a in args)
    if kwargs.get("use_reentrant") is not False and not asked:
        return "reentrant checkpointing without an input that asks for gradients gives its part none"
    return None


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """Advice at the call."""
    where = place(*finding.where)
    advice = "Call the function itself: the memory for its activations is there."
    return [Edit("advice", where.file, where.line, target="checkpoint", advice=advice)]
