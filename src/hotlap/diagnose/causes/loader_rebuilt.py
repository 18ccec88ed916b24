"""loader-rebuilt: the DataLoader is constructed anew each epoch."""

from __future__ import annotations

from hotlap.diagnose.rebuilt import times_rebuilt
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "loader-rebuilt"


def find(view: View) -> Finding | None:
    """Epoch starts of a loader that was made several times at one line: no worker can stay alive between them."""
    start, count = view.times.epoch_start, times_rebuilt(view)
    if count < 2 or start.count < 2 or view.loader is None or view.loader.where is None:
        return None
    where = view.loader.where
    every = f"{start.every:.0f}" if start.every else "?"
    keep = " with persistent_workers=True" if view.workers else ""
    advice = (
        f"Construct the DataLoader at {where.file}:{where.line} once, before the loop over epochs{keep}: each start "
        f"costs {start.each_s:.3g} s, every {every} steps."
    )
    evidence = {
        "each_s": start.each_s, "every_steps": start.every, "starts": start.count, "workers": view.workers,
        "made": count,
    }  # fmt: skip
    return view.finding(
        CAUSE, start.per_step_s, advice, [where], detail=f"DataLoader made every {every} steps", phase="data_wait",
        evidence=evidence, ablation="data",
    )  # fmt: skip
