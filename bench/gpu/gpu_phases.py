"""Phases on the device: what the timeline says, beside the CUDA events of the training itself.

    python bench/gpu/gpu_phases.py --limit-s 45 --json FILE

The training (gpu_loop.py) is watched as ``hotlap diagnose`` does, and brackets its own phases in every step. Compared
are the same steps: those that the timeline has phases of. The host's own clock stands beside, for how far it is off.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotlap.inject.door import environment
from hotlap.records.call import Call
from hotlap.records.rows import PHASES, Event, Step
from hotlap.records.timeline import training_timeline

__all__ = ["LOOPS", "compare", "main", "table"]

HERE = Path(__file__).resolve().parent
LOOPS: dict[str, dict[str, Any]] = {
    "many small layers": {"steps": 1500, "width": 256, "depth": 20, "batch": 64},
    "few large layers": {"steps": 450, "width": 6144, "depth": 4, "batch": 1024},
}
"""The first is bound by its launches, the second by the device."""
LEAST_STEPS = 3
"""Bracketed steps below which nothing is concluded."""


def compare(truth: Sequence[dict[str, float]], events: Sequence[Event], rows: Sequence[Step]) -> dict[str, Any]:
    """By phase, and for the whole step: medians in seconds over the bracketed steps, and of their differences."""
    told = {e.i: {**e.d, "step": float(e.w)} for e in events if e.kind == "device_step" and e.d and e.i < len(truth)}
    by_phase: dict[str, Any] = {}
    for phase in ("h2d", "forward", "backward", "optimizer", "step"):
        pairs = [(truth[i][phase], d[phase] / 1e9) for i, d in told.items() if phase in truth[i] and phase in d]
        if not pairs:
            by_phase[phase] = None
            continue
        real = statistics.median(t for t, _ in pairs)
        by_phase[phase] = {
            "truth_s": real,
            "told_s": statistics.median(o for _, o in pairs),
            "difference_s": statistics.median(o - t for t, o in pairs),
            "worst_s": max((o - t for t, o in pairs), key=abs),
            "host_s": _host_s(rows, phase),
        }
    return {"steps": len(told), "enough": len(told) >= LEAST_STEPS, "phases": by_phase}


def _host_s(rows: Sequence[Step], phase: str) -> float | None:
    if phase == "step":
        return statistics.median(row.w / row.n for row in rows) / 1e9 if rows else None
    seen = [row.p[PHASES.index(phase)] for row in rows if row.n == 1]
    known = [ns for ns in seen if ns is not None]
    return statistics.median(known) / 1e9 if known else None


def table(name: str, found: dict[str, Any]) -> list[str]:
    """For people: milliseconds, and the difference as a share of the true step."""
    step = found["phases"]["step"]
    lines = [f"{name}: {found['steps']} steps compared" + ("" if found["enough"] else ", too few to conclude from")]
    lines.append(
        f"  {'':10} {'truth ms':>9} {'told ms':>9} {'off ms':>9} {'worst ms':>9} {'of step':>8} {'host ms':>9}"
    )
    for phase, row in found["phases"].items():
        if row is None:
            lines.append(f"  {phase:10} not told")
            continue
        host = "-" if row["host_s"] is None else f"{1e3 * row['host_s']:.3f}"
        share = 100 * row["difference_s"] / step["truth_s"] if step else float("nan")
        ms = [f"{1e3 * row[key]:9.3f}" for key in ("truth_s", "told_s", "difference_s", "worst_s")]
        lines.append("  " + " ".join([f"{phase:10}", *ms, f"{share:+8.1f}%", f"{host:>9}"]))
    return lines


def watch(loop: dict[str, Any], folder: Path, limit_s: float) -> dict[str, Any]:
    """One watched run, compared. Raises SystemExit with what it said when it did not come to its end."""
    out, timelines = folder / "truth.json", Path(tempfile.mkdtemp(dir=folder))
    asked = {**loop, "warm": 1, "events": True, "out": str(out)}
    command = [sys.executable, str(HERE / "gpu_loop.py"), json.dumps(asked)]
    env = environment(Call(timeline_dir=str(timelines)), dict(os.environ))
    try:
        done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"the training was not done after the {limit_s:.0f} s that were left for it") from None
    if done.returncode:
        raise SystemExit(f"the training ended with {done.returncode}: {done.stderr[-2000:]}")
    timeline = training_timeline(timelines)
    if timeline is None:
        raise SystemExit(f"the training was not watched: {[p.read_text() for p in timelines.glob('*.error')]}")
    notes = [f"{note.what}: {note.why}" for note in timeline.note]
    return {**compare(json.loads(out.read_text())["events"], timeline.event, timeline.step), "notes": notes}


def main() -> None:
    """Watch each loop, tell, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit-s", type=float, default=45.0)
    parser.add_argument("--json", type=Path, required=True)
    args = parser.parse_args()
    end, results = time.monotonic() + args.limit_s, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, loop in LOOPS.items():
            results[name] = watch(loop, Path(folder), max(1.0, end - time.monotonic()))
            args.json.write_text(json.dumps(results))
            print("\n".join([*table(name, results[name]), *results[name]["notes"]]), flush=True)
    if not all(found["enough"] for found in results.values()):
        raise SystemExit("The timeline holds too few steps with phases of the device.")


if __name__ == "__main__":
    main()
