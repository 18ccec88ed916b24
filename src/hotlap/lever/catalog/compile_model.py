"""Compile the model with torch.compile.

Evidence: Compute dominates, in many small operations (a Python loop in the forward) or in operations that fuse well
(norms and activations between products).

Gain: Operations element by element fuse, so that what is between them is not written to memory and read again, and
Python's cost per operation goes away. Most where many small operations take the time, little where large products do;
more in a faster type, beside which they are a larger part.

Runtime: module.compile() in place after the first step, so that names in checkpoints stay as they are. A frozen network
that another lever treats is called outside of what is compiled. If the compiler fails, or compiles nothing, the model
runs as before, and the lever ends without effect. On a GPU a second setting, in mode "reduce-overhead", records the
kernels of a step in CUDA graphs; dynamic: true compiles for varying sizes at once.

Source: model.compile() after the model has been built and moved. Of a model whose class is torch's own (nn.Sequential)
that compiles nothing (seen with torch 2.13), and the patch says so; the lever compiles such a model all the same.

Risk: Compilation takes as long as many steps, by the size of the model and the cores, and later steps have to earn it
back: a short run does not get it. Inputs of many shapes compile again and again. Fused operations round differently.
With CUDA graphs an output is overwritten by the next forward, so that a script that keeps outputs across steps fails;
its trial then does, and the lever is put back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakSet

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.compiled import compile_in_place
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded, of_compute
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

ID = "compile-model"
TREATS = ("python-loop", "samples-loop", "precision", "memory-format", "unfused")
PRESERVES = "maths"
CONFLICTS = ("trim-padding",)
NUMERIC = True
SHARED_CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""Compiled code is found again by its source: a second start is quicker than the first."""

RULES = {"mode": Rule(str, choices=("default", "reduce-overhead", "max-autotune")), "dynamic": Rule(bool)}
"""Both may be left out: torch decides then."""

STARTUP_S = 34.0
"""Prior: the middle of 16 to 52 s, on two CPU cores."""


def evidence(findings: Findings) -> Finding | None:
    """A finding that says the step is bound by compute; with it, whether the model's class is torch's."""
    found = first(findings, TREATS)
    if found is None or not findings.script.model.get("class_of_torch"):
        return found
    return replace(found, evidence={**found.evidence, "class_of_torch": True})


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """Default mode, where a compiler is at hand; on a GPU with CUDA graphs after that."""
    if findings.script.model.get("compiled"):
        return Refusal("The model is compiled already.")
    if findings.script.device == "cpu" and machine.compiler is None:
        return Refusal("There is no C++ compiler, which torch.compile needs on a CPU.")
    if findings.script.device != "cpu" and machine.has_gpu and not all(a.triton for a in machine.accelerators):
        return Refusal("The accelerator is not supported by Triton, which torch.compile needs.")
    return [{}] if findings.script.device == "cpu" else [{}, {"mode": "reduce-overhead"}]


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Prior: 1.09 to 1.36 times on the compute part, after a long start; of loops in Python a third to nine tenths."""
    if finding.cause == "unfused":
        return bounded(findings, 0.4 * finding.seconds_per_step, 1.6 * finding.seconds_per_step, "prior", STARTUP_S)
    if finding.cause in ("python-loop", "samples-loop"):
        return bounded(findings, 0.3 * finding.seconds_per_step, 0.9 * finding.seconds_per_step, "prior", STARTUP_S)
    return of_compute(findings, 1.09, 1.36, STARTUP_S)


def check(setting: Setting, machine: Machine) -> str | None:
    """Known modes; a compiler has to be there, and Triton on a GPU."""
    if not machine.has_gpu and machine.compiler is None:
        return "This machine has no C++ compiler, which torch.compile needs."
    old = next((a for a in machine.accelerators if not a.triton), None)
    if old is not None:
        return f"{old.name} (capability {old.capability}) cannot run Triton, which torch.compile needs: 7.0 or later."
    wrong = check_setting({"mode": "default", "dynamic": False, **setting}, RULES)
    if wrong is None and setting.get("mode") == "reduce-overhead" and not machine.has_gpu:
        return "mode is 'reduce-overhead', which needs CUDA graphs, and torch sees no GPU."
    return wrong


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Compile each trained root in place, once its first step has shown which frozen networks it calls."""
    frozen: WeakSet[nn.Module] = WeakSet()
    waiting: list[nn.Module] = []
    stepped: list[bool] = []

    def wait(module: nn.Module) -> None:
        waiting.append(module)
        if stepped:  # it joins a training that is under way
            compile_waiting()

    def compile_waiting(_: Optimizer | None = None) -> None:
        stepped.append(True)
        while waiting:
            compile_in_place(waiting.pop(), frozen, target, setting)

    target.on_model(wait)
    target.on_frozen(frozen.add)
    target.on_optimizer(compile_waiting)


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """``model.compile()`` after the model has been built; of a model that this compiles nothing of, advice."""
    where = place(*finding.where)
    keywords = ", ".join(f"{key}={value!r}" for key, value in setting.items())
    if finding.evidence.get("class_of_torch"):
        advice = (
            "The model's class is torch's own (nn.Sequential, say), of which model.compile() compiles nothing. Give it "
            f"a class of yours whose forward calls it, and compile that: model.compile({keywords})."
        )
        return [Edit("advice", where.file, where.line, advice=advice)]
    return [Edit("insert_after", where.file, where.line, target="model", code=f"{{module}}.compile({keywords})")]
