"""Run a network that is not trained (a teacher, a frozen trunk) for inference: no graph, a 16-bit type, channels last.

Evidence: In training steps a network is called of whose parameters none is trained, in full precision.

Gain: The network's forward runs at the rate of the faster type and layout, and records no graph. What that saves grows
with the network's share of the step: most where it is large beside the one that is trained. Without convolutions the
type alone counts.

Runtime: Forwards of modules whose parameters are all frozen, outermost ones and the largest frozen parts of trained
models, run without gradients and under torch.autocast; their outputs come back as fp32. safetensors, which takes no
other layout, is given the usual one when it saves; weights that are parts of one buffer keep theirs. A call through
which gradients pass to its input (a perceptual loss), and a module that is unfrozen later, is left alone; so is one
whose first call with gradients on, which runs as it is, shows that something inside is trained that is no parameter of
it (adapters in hooks of its layers). A network whose gradients no optimizer uses is frozen before the second step,
unless the script changes its weights or gradients (updates by hand, clipping).

Source: with torch.no_grad(), torch.autocast(device_type, dtype=torch.bfloat16): around the teacher's forward, after
teacher.to(memory_format=torch.channels_last).

Risk: The teacher's outputs are rounded to 8 bits (bf16). BatchNorm in training mode would gather its running statistics
from rounded values. A script that reads gradients of a network that it does not train finds old ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.dense_saves import save_in_the_usual_layout
from hotlap.lever.evidence import first, place
from hotlap.lever.frozen_hooks import hook_frozen
from hotlap.lever.frozen_parts import frozen_parts
from hotlap.lever.gains import bounded
from hotlap.lever.owners import is_held
from hotlap.lever.untrained import freeze_untrained
from hotlap.lever.weight_places import are_shared
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn

ID = "teacher-inference"
TREATS = ("frozen-subnetwork",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = True

RULES = {"dtype": Rule(str, choices=("bf16", "fp16", "fp32")), "channels_last": Rule(bool)}


def evidence(findings: Findings) -> Finding | None:
    """A network that is called and not trained."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """The fastest type with and without channels-last (where there are convolutions), then channels-last alone, then,
    for one that nobody froze, no graph alone."""
    known = finding.evidence
    needless = known.get("frozen") is False  # it gets gradients that no optimizer uses
    if needless and findings.script.world_size > 1:
        return Refusal("Its parameters require gradients: call requires_grad_(False) on it first.")
    if known.get("asked"):
        return Refusal("Gradients pass through it to its input, so that it computes as the training does.")
    convs = known.get("conv_layers") != 0
    fp16 = machine.has_gpu and all(a.fp16 for a in machine.accelerators)
    half = "bf16" if machine.fast_bf16 else "fp16" if fp16 else ""
    found: list[Setting] = []
    if half and not known.get("autocast"):
        found += [{"dtype": half, "channels_last": last} for last in ((True, False) if convs else (False,))]
    found += [{"dtype": "fp32", "channels_last": True}] if convs else []
    found += [{"dtype": "fp32", "channels_last": False}] if needless else []
    return found or Refusal("This machine has no faster type for it, and it has no convolutions.")


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Prior: from a fifth of what the finding says to all of it; a third at most for the layout alone. Half at least of
    a network that nobody froze, whose gradients go too."""
    needless = finding.evidence.get("frozen") is False
    most = finding.seconds_per_step * (1.0 if setting["dtype"] != "fp32" or needless else 0.33)
    return bounded(findings, (0.5 if needless else 0.2) * most, most, "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """A type that this machine computes in hardware."""
    wrong = check_setting(setting, RULES)
    if wrong is None and setting["dtype"] == "bf16" and not machine.fast_bf16:
        return "dtype is 'bf16', which this machine does not compute in hardware."
    if wrong is None and setting["dtype"] == "fp16" and not any(a.fp16 for a in machine.accelerators):
        return "dtype is 'fp16', which needs an accelerator."
    return wrong


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Hook each frozen network once."""

    treated: WeakSet[nn.Module] = WeakSet()

    def treat(module: nn.Module) -> None:
        if module not in treated:  # hooks of two contexts would leave them in the wrong order
            treated.add(module)
            stays = is_held(module) or are_shared(module)
            hook_frozen(target, module, setting["dtype"], setting["channels_last"] and not stays)

    roots: WeakSet[nn.Module] = WeakSet()

    def look_inside(root: nn.Module) -> None:
        if any(type(part).__name__ == "DataParallel" for part in root.modules()):
            return  # its parts are called as copies in several threads, which share the hooks
        roots.add(root)
        for part in list(frozen_parts(root)):
            treat(part)

    def treat_part(module: nn.Module) -> None:
        if any(module is part for root in roots for part in root.modules()):
            treat(module)  # one that is called by itself is met as a frozen network

    target.on_frozen(treat)
    target.on_model(look_inside)
    freeze_untrained(target, treat_part)
    if setting["channels_last"]:
        save_in_the_usual_layout(target)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """A ``with`` around its forward; the layout where it is built."""
    where = place(*finding.where)
    found = []
    if setting["dtype"] == "fp32":
        found.append(Edit("wrap_with", where.file, where.line, target="forward", code="with torch.no_grad():"))
    else:
        dtype = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}[setting["dtype"]]
        code = f"with torch.no_grad(), torch.autocast(next({{module}}.parameters()).device.type, dtype={dtype}):"
        found.append(Edit("wrap_with", where.file, where.line, target="forward", code=code))
        found.append(Edit("replace_call", where.file, where.line, target="forward", code="{call}.float()"))
    if setting["channels_last"]:
        advice = "Call .to(memory_format=torch.channels_last) on the network when it has been built."
        found.append(Edit("advice", where.file, where.line, advice=advice))
    return found
