"""What a reader should know before trusting the numbers."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from hotlap.diagnose.alike import grew_alike
from hotlap.diagnose.drift import find_drift, neighbours_since
from hotlap.diagnose.sites import calls, collect_calls
from hotlap.diagnose.view import View
from hotlap.diagnose.worker_notes import worker_notes
from hotlap.records.sizes import size_text

__all__ = ["CAME_ONCE", "make_notes"]

CAME_ONCE = "came right after the first step, and none again"
"""What a note says of a validation or checkpoint that has no cadence yet: a longer look may know better."""

_TICK_PART = 0.0005
"""Of a run's age so far: what lies between two ticks then (probe/memory.py)."""


def make_notes(view: View) -> list[str]:
    """Sentences: probes that failed, neighbours, phases not measured, gaps in telemetry, memory growth, a short run."""
    timeline = view.timeline
    notes = [f"{note.what}: {note.why}" for worker in [timeline, *timeline.workers] for note in worker.note]
    notes = list(dict.fromkeys(notes))
    if view.steady.steps < view.policy.short_run_steps:
        notes.append(
            f"Only {view.steady.steps} steady steps were seen; shares are rough below {view.policy.short_run_steps}."
        )
    for row in view.steady.aside:
        notes.append(
            f"Step {row.i} took {row.w / 1e9:.3g} s, most of it to compute, as where code is compiled anew: "
            "left out of the shares, since the others took less than a twentieth of that."
        )
    notes += _came_once(view)
    drift = find_drift(view)
    taken = neighbours_since(view, drift) if drift is not None else None
    if drift is not None and taken is not None:
        notes.append(
            f"From step {drift.at_step} on other processes took {taken[1]:.1f} of {view.machine.cores} cores "
            f"({taken[0]:.1f} before), and steps got slower. Shares are of both parts: measure again when it is quiet."
        )
    elif drift is not None and drift.after_s > drift.before_s > 0 and grew_alike(view, drift):
        since = "over the run" if drift.growing else f"from step {drift.at_step} on"
        notes.append(
            f"Steps took {drift.after_s / drift.before_s:.2f}x as long {since}, forward, backward and update alike, as "
            "where a processor gets hot or others use it: measure again when it is quiet."
        )
    missing = [p for p in ("data_wait", "forward", "backward", "optimizer") if view.times.phase_s.get(p) is None]
    if missing:
        notes.append(f"Not measured: {', '.join(missing).replace('_', ' ')}.")
    ticks = timeline.tick
    if len(ticks) > 3:
        stopped = 0
        usual = median(b.t - a.t for a, b in pairwise(ticks))
        for a, b in pairwise(ticks):  # they come ever more rarely as a run grows old
            due = max(usual, _TICK_PART * (a.t - ticks[0].t))
            stopped += due > 0 and b.t - a.t > max(5 * due, due + 5e9)
        if stopped:
            notes.append(f"The process stood still {stopped} times for over 5 s (frozen, suspended or starved).")
        first, last = ticks[len(ticks) // 4].rss_bytes, ticks[-1].rss_bytes
        if first > 0 and last > 1.5 * first and last - first > 256 * 2**20:
            notes.append(f"Memory of the process grew from {size_text(first)} to {size_text(last)} while it trained.")
    notes += _free_syncs(view) + _on_the_device(view)
    if view.workers and not timeline.workers:
        notes.append("No worker of the loader could be watched; its split is unknown.")
    return notes + worker_notes(view)


def _came_once(view: View) -> list[str]:
    """What came right after the first step alone: in no figure, since nobody knows how often it comes."""
    found = {"validation": view.times.validation, "checkpoint": view.times.checkpoint}
    return [
        f"One {what} of {work.each_s:.3g} s {CAME_ONCE} in {view.timeline.n_steps} steps: how often it comes is not "
        "known, and it is in no figure."
        for what, work in found.items()
        if work.count == 1 and work.every is None
    ]


def _free_syncs(view: View) -> list[str]:
    """On a CPU reading a value costs nothing, and the same line will wait on a GPU: said, not counted."""
    found = collect_calls(view, calls(view, "sync"))
    if view.on_device or found.per_step < 1.0 or not found.where:
        return []
    line = f"{found.where[0].file}:{found.where[0].line}"
    often = "once" if found.per_step < 1.05 else f"{found.per_step:.2g} times"
    return [
        f"Values are read from tensors {often} a step ({line}): free here, on a GPU each read waits for the device."
    ]


def _on_the_device(view: View) -> list[str]:
    """Shares are the host's, which runs ahead of the device: beside them, what the device took for the phases."""
    parts = [f"{seconds:.3g} s {phase.replace('_', ' ')}" for phase, seconds in view.device_s.items() if seconds > 0]
    told = f"Of a step's {view.times.step_s:.3g} s the device took {', '.join(parts)}: no wait of the host costs more "
    told += f"than the {view.device_idle_s or 0.0:.3g} s left."
    return [f"Shares are the host's, which runs ahead of the device. {told}"] if parts else []
