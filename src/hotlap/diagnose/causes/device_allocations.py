"""device-allocations: the device's allocator asks the driver for memory in the midst of training."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "device-allocations"


def find(view: View) -> Finding | None:
    """Requests between the second look at the allocator and the last one: by then it should have all that it needs."""
    rows = [row.value for row in view.setting_rows("device_memory")]
    rows = [v for v in rows if isinstance(v.get("driver_allocs"), int) and isinstance(v.get("step"), int)]
    if len(rows) < 3 or rows[-1]["step"] <= rows[1]["step"]:
        return None
    first, last = rows[1], rows[-1]
    steps = last["step"] - first["step"]
    per_step = (last["driver_allocs"] - first["driver_allocs"]) / steps
    retries = ((last.get("retries") or 0) - (first.get("retries") or 0)) / steps
    policy = view.policy
    evidence = {
        "allocs_per_step": per_step, "retries_per_step": retries, "expandable": bool(last.get("expandable")),
        "basis": "prior", "prior": policy.driver_alloc_s,
    }  # fmt: skip
    return view.finding(
        CAUSE, per_step * policy.driver_alloc_s + retries * policy.driver_retry_s, "Keep batches to a few shapes "
        "(pad to buckets), leave torch.cuda.empty_cache() out of the loop, or start the script with "
        "PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before torch 2.9).", view.forward_where(),
        detail=f"{per_step:.3g} requests per step", phase="forward", evidence=evidence,
    )  # fmt: skip
