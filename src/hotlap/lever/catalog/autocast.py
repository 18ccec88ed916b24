"""Compute forward and backward in bf16 (or fp16) where the machine is faster in it.

Evidence: The step is bound by compute in fp32, and the machine has a faster type (AVX-512 or AMX bf16, tensor cores).

Gain: Matrix products and convolutions run at the rate of the faster type, and activations in it take half of the
memory. What share of the step such products are decides: most of it in large layers, little where small operations or
the data take the time. On a CPU fused attention can be slower in bf16 than attention written out.

Runtime: The outermost forward of each trained model runs under torch.autocast, and its floating outputs come back as
fp32, so that losses outside stay in fp32; so does a module that makes a loss of what another one gave (a margin head:
its angles, rounded to 8 bits, shift the loss one way). With fp16 the loss is scaled, gradients are unscaled before they
accumulate, and a step with an overflow is skipped; where a step may compute gradients several times (LBFGS, or an
optimizer of the script's with a closure), the lever gives up. A script that uses autocast itself is left alone.

Source: with torch.autocast(device_type, dtype=torch.bfloat16): around the forward; a GradScaler for fp16.

Risk: Weights and optimizer stay in fp32, but products are rounded to 8 bits (bf16), so that losses differ from the
first step on; quality is proved over seeds. With fp16, hooks on what a model computes see gradients times the scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from hotlap.lever.checks import Rule, check_setting
from hotlap.lever.contract import Gain, Refusal, Setting, Target
from hotlap.lever.evidence import first, place
from hotlap.lever.gains import bounded, of_compute
from hotlap.lever.loss_heads import LossHeads, fed_by_a_model
from hotlap.lever.loss_scale import LossScale
from hotlap.lever.nested import map_tensors
from hotlap.lever.weight_casts import casts_forget_gradients
from hotlap.records.edits import Edit
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine

if TYPE_CHECKING:
    import torch
    from torch import nn

ID = "autocast"
TREATS = ("precision",)
PRESERVES = "maths"
CONFLICTS = ()
NUMERIC = True

RULES = {"dtype": Rule(str, choices=("bf16", "fp16"))}


def evidence(findings: Findings) -> Finding | None:
    """Compute in fp32 where a faster type is at hand."""
    return first(findings, TREATS)


def settings(finding: Finding, findings: Findings, machine: Machine) -> list[Setting] | Refusal:
    """bf16 where it is in hardware, else fp16 on an accelerator."""
    model = findings.script.model
    if model.get("autocast"):
        return Refusal("The script uses autocast already.")
    if model.get("dtype") not in (None, "float32", "torch.float32", "fp32"):
        return Refusal(f"The model is {model['dtype']}, not fp32.")
    if findings.script.device != "cpu":
        if machine.fast_bf16:
            return [{"dtype": "bf16"}]
        fp16 = machine.has_gpu and all(a.fp16 for a in machine.accelerators)
        return [{"dtype": "fp16"}] if fp16 else Refusal("The accelerator has no fast 16-bit type.")
    return [{"dtype": "bf16"}] if machine.fast_bf16_on_cpu else Refusal("This CPU has no bf16 in hardware.")


def gain(finding: Finding, findings: Findings, setting: Setting) -> Gain:
    """Prior: the compute part 1.1 to 2.5 times as fast on an accelerator. On a CPU half to one and a half times what
    the finding says, which knows how much of the compute is arithmetic (many small calls get slower by the casts), and
    no more than 2.9 times as fast."""
    if findings.script.device != "cpu":
        return of_compute(findings, 1.1, 2.5)
    most = findings.step_model.compute_s * (1 - 1 / 2.9)
    said = finding.seconds_per_step
    return bounded(findings, min(0.5 * said, most), min(1.5 * said, most), "prior")


def check(setting: Setting, machine: Machine) -> str | None:
    """A type that this machine computes in hardware."""
    wrong = check_setting(setting, RULES)
    if wrong is None and setting["dtype"] == "fp16" and not any(a.fp16 for a in machine.accelerators):
        return "dtype is 'fp16', which needs an accelerator."
    if wrong is None and setting["dtype"] == "bf16" and not (machine.fast_bf16 or machine.fast_bf16_on_cpu):
        return "dtype is 'bf16', which this machine does not compute in hardware."
    return wrong


def environment(setting: Setting) -> dict[str, str]:
    """None needed."""
    return {}


def apply(target: Target, setting: Setting) -> None:
    """Run trained roots under autocast."""
    seen: WeakSet[nn.Module] = WeakSet()
    heads = LossHeads()
    scale = LossScale(target) if setting["dtype"] == "fp16" else None

    def forward(module: nn.Module, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch

        parameter = next(module.parameters(), None)
        if parameter is None or parameter.dtype is not torch.float32:
            return call(*args, **kwargs)
        kind = parameter.device.type
        low = torch.bfloat16 if setting["dtype"] == "bf16" else torch.float16
        traced = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        if torch.is_autocast_enabled(kind) or module in heads or traced:  # an export holds no casts
            return call(*args, **kwargs)
        if module not in seen:
            seen.add(module)
            if scale is not None:
                scale.watch(module)
            if fed_by_a_model((args, kwargs)):
                return heads.judge(module, call(*args, **kwargs))
            target.changed()
        with torch.autocast(kind, dtype=low, cache_enabled=False if casts_forget_gradients() else None):
            out = call(*args, **kwargs)
        return map_tensors(out, lambda t: _as_fp32(t, low))

    target.around_forward(forward)
    if scale is not None:
        target.around_backward(scale.backward)
        target.around_step(scale.step)


def _as_fp32(tensor: torch.Tensor, low: torch.dtype) -> torch.Tensor:
    return tensor.float() if tensor.dtype is low else tensor


def edits(finding: Finding, setting: Setting) -> list[Edit]:
    """A ``with torch.autocast`` around each forward, and what it returns back in fp32."""
    where = place(*finding.where)
    if setting["dtype"] == "fp16":  # where the scaled loss is unscaled, clipped and stepped is the script's structure
        advice = (
            "Put the forward under torch.autocast(..., torch.float16), and scale the loss with torch.amp.GradScaler."
        )
        return [Edit("advice", where.file, where.line, advice=advice)]
    device = "next({module}.parameters()).device.type"  # right wherever the script puts the model
    code = f"with torch.autocast({device}, dtype=torch.bfloat16):"
    return [
        Edit("wrap_with", where.file, where.line, target="forwards", code=code),
        Edit("replace_call", where.file, where.line, target="forwards", code="{call}.float()"),
    ]
