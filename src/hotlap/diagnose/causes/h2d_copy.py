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
    saved_s = _copying_s(view)
    return view.finding(
        CAUSE, saved_s, advice, where, detail="copies from pageable memory", phase="h2d",
        evidence={"h2d_s": saved_s, "pin_memory": False},
    )  # fmt: skip


def _copying_s(view: View) -> float:
    """What could vanish. A blocking copy also waits for all that the device was given before, and that stays: at most
    the copy itself goes, and what the host does in the rest of the step, for which the device then need not wait."""
    host_s, device_s = view.seconds("h2d"), view.device_s.get("h2d")
    return host_s if device_s is None else min(host_s, device_s + max(0.0, view.times.step_s - host_s))
