"""memory-leak: tensors are kept from step to step with the graph behind them."""

from __future__ import annotations

from hotlap.diagnose.kept import kept
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding
from hotlap.records.rows import Tick

CAUSE = "memory-leak"


def _bytes_per_step(view: View, ticks: list[Tick]) -> tuple[float, float] | None:
    """Growth of the process and of the device's memory, bytes per step; None with fewer than three ticks."""
    if len(ticks) < 3:
        return None
    first, last = ticks[len(ticks) // 4], ticks[-1]
    steps = sum(row.n for row in view.steady.rows if first.t <= row.t <= last.t)
    if steps <= 0:
        return None
    device = (last.device_bytes or 0) - (first.device_bytes or 0)
    return (last.rss_bytes - first.rss_bytes) / steps, device / steps


def find(view: View) -> Finding | None:
    """A variable that holds one more graph after every step. Its cost is memory, so it is told without a share."""
    found = [k for k in kept(view) if k.kind in ("graph", "sum")]
    if not found:
        return None
    first = found[0]
    line = f"{first.where.file}:{first.where.line}"
    grown = _bytes_per_step(view, [tick for tick in view.timeline.tick if tick.t >= view.start_ns])
    evidence = {
        "names": [k.name for k in found], "length": first.length, "kept_per_step": first.per_step,
        "rss_growth_bytes_per_step": grown[0] if grown else None,
        "device_growth_bytes_per_step": grown[1] if grown else None,
    }  # fmt: skip
    held = "a running sum keeps the graph of every step" if first.kind == "sum" else "each value brings its graph along"
    return Finding(
        CAUSE, 0.0, 0.0, confirmed=False, where=[k.where for k in found[: view.policy.max_where]],
        advice=f"Add {first.name} up from loss.detach() or loss.item() at {line}: {held}, and memory grows.",
        detail=f"{first.name} keeps {first.length} graphs", phase=None, evidence=evidence,
    )  # fmt: skip
