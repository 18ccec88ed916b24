"""emulated-dtype: compute runs in a 16-bit type that this machine has no units for."""

from __future__ import annotations

from hotlap.diagnose.script import model_facts
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "emulated-dtype"
SHORT = {"bfloat16": "bf16", "float16": "fp16"}


def _region(view: View) -> list[Where]:
    """The line that begins the region of autocast."""
    row = next((r for r in reversed(view.setting_rows("model")) if r.value.get("autocast")), None)
    return view.setting_where(row) if row is not None else []


def find(view: View) -> Finding | None:
    """A prior only: how much slower the type is depends on the layers, and is measured by the lever."""
    model = model_facts(view.timeline)
    own = SHORT.get(str(model.get("dtype") or "").removeprefix("torch."))
    dtype = model.get("autocast") or own
    if dtype is None or not view.machine.emulates(dtype, on_cpu=not view.on_device):
        return None
    seconds = view.policy.emulated_frac * view.compute_s * view.compute_bound
    advice = (
        "Load or convert the model in float32."
        if own
        else f"Leave autocast to {dtype} off on this machine (enabled=False, bf16=False, mixed_precision='no')."
    )
    where = [*view.option_where(CAUSE), *_region(view), *view.forward_where()][: view.policy.max_where]
    evidence = {"dtype": dtype, "autocast": not own, "compute_s": view.compute_s, "basis": "prior"}
    return view.finding(CAUSE, seconds, advice, where, detail=f"{dtype} where only fp32 is fast", phase="forward",
                        evidence=evidence)  # fmt: skip
