"""precision: compute runs in fp32 where this machine has a faster type."""

from __future__ import annotations

from hotlap.diagnose.causes import python_loop, samples_loop
from hotlap.diagnose.faults import page_faults
from hotlap.diagnose.module_hooks import hook_work
from hotlap.diagnose.script import model_facts
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding
from hotlap.records.machine import Machine

CAUSE = "precision"
LOOPS = (python_loop, samples_loop)


def _faster(machine: Machine, on_device: bool) -> str | None:
    if not on_device:
        return "bf16" if machine.fast_bf16_on_cpu else None
    for name in ("bf16", "fp16", "tf32"):
        if machine.accelerators and all(getattr(a, name) for a in machine.accelerators):
            return name
    return None


def find(view: View) -> Finding | None:
    """A prior only: what a 16-bit type saves depends on the layers, and is measured by the lever.

    Of the time that is computed in large operations: the kernel hands out pages no sooner for it, hooks do what they
    do, and the small ones of a Python loop, sample by sample or head by head, take longer by the casts.
    """
    model = model_facts(view.timeline)
    dtype = str(model.get("dtype") or "").removeprefix("torch.")
    if dtype == "float64":
        return _double(view)
    if dtype != "float32" or model.get("autocast"):
        return None
    faster = _faster(view.machine, view.on_device)
    if faster is None:
        return None
    prior = view.policy.autocast_prior * view.compute_bound
    if not view.on_device:
        prior *= 1.0 - (model.get("stepwise_frac") or 0.0)  # small recurrent layers are slower in bf16 on a CPU
    faults = page_faults(view)
    looped = max((f.evidence["forward_share"] for cause in LOOPS if (f := cause.find(view))), default=0.0)
    other_s = hook_work(view)[0] + (faults.seconds if faults is not None else 0.0)
    compute_s = max(0.0, view.compute_s * (1.0 - looped) - other_s)
    evidence = {"dtype": dtype, "faster": faster, "compute_s": compute_s, "basis": "prior", "prior": prior}
    scaled = ", and scale the loss with torch.amp.GradScaler" if faster == "fp16" else ""  # small gradients become 0
    advice = (
        "Call torch.set_float32_matmul_precision('high')." if faster == "tf32"
        else f"Run the forward under torch.autocast in {faster}{scaled}."
    )  # fmt: skip
    return view.finding(
        CAUSE, compute_s * prior, advice, view.forward_where(), detail=f"fp32 where {faster} is fast",
        phase="forward",
        evidence=evidence,
    )  # fmt: skip


def _double(view: View) -> Finding | None:
    """Twice the width, half the speed: vector units and memory take half as many numbers (a GPU for games: 1 in 64)."""
    where = [*view.option_where(CAUSE), *view.forward_where()][: view.policy.max_where]
    seconds = view.policy.double_frac * view.compute_s * view.compute_bound
    advice = "Train in float32: model.float(), and inputs as float32 (numpy's default is float64)."
    evidence = {"dtype": "float64", "faster": "float32", "compute_s": view.compute_s, "basis": "prior"}
    return view.finding(CAUSE, seconds, advice, where, detail="fp64 where fp32 is usual", phase="forward",
                        evidence=evidence)  # fmt: skip
