"""sync: the host waits for the device where it need not."""

from __future__ import annotations

from hotlap.diagnose.stacks import user_where
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "sync"


def find(view: View) -> Finding | None:
    """Seconds of sync calls by line, on a device only: on the CPU there is nothing to wait for.

    Where the device's busy fraction is known, at most its idle part can be won.
    """
    if not view.on_device:
        return None
    sites = [site for site in view.timeline.site if site.kind == "sync" and site.t >= view.start_ns]
    steps = max(1, view.steady.steps)
    seconds = max(sum(site.w for site in sites) / steps / 1e9, view.seconds("sync"))
    busy = [t.device_busy_frac for t in view.timeline.tick if t.device_busy_frac is not None and t.t >= view.start_ns]
    idle = 1.0 - sum(busy) / len(busy) if busy else None
    won = min(seconds, idle * view.times.step_s) if idle is not None else seconds
    cost: dict[int, int] = {}
    for site in sites:
        cost[site.frame] = cost.get(site.frame, 0) + site.w
    total = max(1, sum(cost.values()))
    where = []
    for frame, ns in sorted(cost.items(), key=lambda pair: -pair[1])[: view.policy.max_where]:
        place = user_where(view.timeline, frame_id=frame)
        if place is not None:
            where.append(Where(place.file, place.line, place.function, place.text, ns / total))
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    calls = sum(site.n for site in sites) / steps
    evidence = {
        "sync_s": seconds,
        "calls_per_step": calls,
        "device_idle_frac": idle,
        "ops": sorted({s.op for s in sites}),
    }
    return view.finding(
        CAUSE, won, f"Keep the value on the device and read it every so many steps{at} ({calls:.3g} syncs per step).",
        where, detail=f"{calls:.3g} per step", phase="sync", evidence=evidence,
    )  # fmt: skip
