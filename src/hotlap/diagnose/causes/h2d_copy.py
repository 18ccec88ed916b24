"""h2d-copy: batches are copied to the device from pageable memory."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "h2d-copy"


def find(view: View) -> Finding | None:
    """Host-to-device copies of a loader that does not pin its batches; on a CPU there are none."""
    if not view.on_device or view.loader is None or view.loader.pin_memory:
        return None
    copies = view.stacks.phase("h2d").lines(view.policy.max_where)
    where = copies or ([view.loader.where] if view.loader.where else [])
    made = view.loader.where
    at = f" at {made.file}:{made.line}" if made else ""
    advice = f"Set pin_memory=True{at} and copy with .to(device, non_blocking=True)."
    return view.finding(
        CAUSE, view.seconds("h2d"), advice, where, detail="copies from pageable memory", phase="h2d",
        evidence={"h2d_s": view.seconds("h2d"), "pin_memory": False}, ablation="data",
    )  # fmt: skip
