"""h2d-copy: batches are copied to the device from pageable memory."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "h2d-copy"


def find(view: View) -> Finding | None:
    """Host-to-device copies of a loader that does not pin its batches; on a CPU there are none.

    Named are the lines that copy, then the loader's: both are to be changed.
    """
    if not view.on_device or view.loader is None or view.loader.pin_memory:
        return None
    made = view.loader.where
    copies = view.stacks.phase("h2d").lines(view.policy.max_where - 1)
    where = [*copies, *([made] if made else [])]
    at = f" at {made.file}:{made.line}" if made else ""
    advice = f"Set pin_memory=True{at} and copy with .to(device, non_blocking=True)."
    return view.finding(
        CAUSE, view.seconds("h2d"), advice, where, detail="copies from pageable memory", phase="h2d",
        evidence={"h2d_s": view.seconds("h2d"), "pin_memory": False}, ablation="data",
    )  # fmt: skip
