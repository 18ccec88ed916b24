"""cudnn-benchmark: convolutions run by heuristics where cuDNN could try its algorithms out."""

from __future__ import annotations

from hotlap.diagnose.script import model_facts
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "cudnn-benchmark"


def find(view: View) -> Finding | None:
    """A prior on the convolutions' part of the compute, on a device, where inputs were seen to have one shape."""
    value, model = view.setting("backends"), model_facts(view.timeline)
    frac = model.get("conv_frac") or 0.0
    if not view.on_device or not value or value.get("cudnn_benchmark") or frac < view.policy.min_conv_frac:
        return None
    if value.get("cudnn_deterministic") or value.get("deterministic"):
        return None  # trying algorithms out may choose another one in each run
    shapes = [int(row.value.get("shapes") or 0) for row in view.setting_rows("inputs")]
    if not shapes or max(shapes) > 1 or "AMD" in view.timeline.device:
        return None
    prior = view.policy.cudnn_benchmark_prior
    evidence = {"conv_frac": frac, "shapes": max(shapes), "compute_s": view.compute_s, "basis": "prior", "prior": prior}
    return view.finding(
        CAUSE, view.compute_s * prior * min(1.0, float(frac)), "Set torch.backends.cudnn.benchmark = True: all batches "
        "have one shape.", view.forward_where(), detail="one shape, heuristics", phase="forward", evidence=evidence,
    )  # fmt: skip
