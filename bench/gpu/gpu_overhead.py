"""What watching costs on a GPU: a loop of short steps bare, diagnosed and guarded, in interleaved runs.

    python bench/gpu/gpu_overhead.py --limit-s 80 --json FILE

Each run is a process of its own and times its own loop (gpu_loop.py). Rounds are played as long as the next one fits.
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
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from overhead import bootstrap, percent  # noqa: E402

from hotlap.cli.commands.run import GUARD_HITS_S, GUARD_STACK_HZ  # noqa: E402
from hotlap.inject.door import environment  # noqa: E402
from hotlap.records.call import Call  # noqa: E402
from hotlap.records.timeline import training_timeline  # noqa: E402

__all__ = ["ARMS", "figures", "main", "once", "rounds"]

ARMS = ("bare", "bare again", "diagnosed", "guarded")
LOOP = {"steps": 1600, "warm": 200, "width": 256, "depth": 20, "batch": 64}
"""Some hundred and fifty launches a step: one to two milliseconds, bound by the host, which is where probes show."""


def once(arm: str, loop: dict[str, Any], folder: Path) -> float:
    """Seconds per step of one run. Raises SystemExit when a watched run left no whole timeline."""
    out = folder / "seconds.json"
    out.unlink(missing_ok=True)
    timelines = Path(tempfile.mkdtemp(dir=folder))
    env = dict(os.environ)
    if arm == "diagnosed":
        env = environment(Call(timeline_dir=str(timelines)), env)
    elif arm == "guarded":
        guard = Call(timeline_dir=str(timelines), mode="run", stack_hz=GUARD_STACK_HZ, hits_most_s=GUARD_HITS_S)
        env = environment(guard, env)
    command = [sys.executable, str(HERE / "gpu_loop.py"), json.dumps({**loop, "out": str(out)})]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arm}: the loop ended with {done.returncode}: {done.stderr[-2000:]}")
    if arm in ("diagnosed", "guarded"):
        timeline = training_timeline(timelines)
        if timeline is None or timeline.n_steps != loop["steps"]:
            raise SystemExit(f"The {arm} run left no whole timeline.")
    return float(json.loads(out.read_text())["step_s"])


def rounds(loop: dict[str, Any], limit_s: float, folder: Path) -> dict[str, list[float]]:
    """Round after round, every other one backwards, as long as the next one fits; one at least."""
    seen: dict[str, list[float]] = {arm: [] for arm in ARMS}
    begun, number = time.monotonic(), 0
    while number == 0 or (time.monotonic() - begun) * (number + 1) / number <= limit_s:
        for arm in ARMS if number % 2 else ARMS[::-1]:
            seen[arm].append(once(arm, loop, folder))
        number += 1
        print(f"round {number}", {arm: f"{values[-1] * 1e3:.3f} ms" for arm, values in seen.items()}, flush=True)
    return seen


def figures(seen: dict[str, list[float]]) -> dict[str, Any]:
    """Overhead of each arm in percent of the bare run of its round: median, and the 95 % range of its bootstrap."""
    bare = seen["bare"]
    found = {
        arm: bootstrap([100 * (v / b - 1) for v, b in zip(seen[arm], bare, strict=True)])
        for arm in ARMS
        if arm != "bare"
    }
    return {"step_s": statistics.median(bare), "overhead_percent": found, "rounds": len(bare), "seconds_per_step": seen}


def main() -> None:
    """Play, tell, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit-s", type=float, default=80.0)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: to try the bench out")
    parser.add_argument("--steps", type=int, default=LOOP["steps"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        loop = {**LOOP, "device": args.device, "steps": args.steps}
        seen = rounds(loop, args.limit_s, Path(folder))
    args.json.write_text(json.dumps(figures(seen)))
    print(f"bare step {statistics.median(seen['bare']) * 1e3:.2f} ms, {len(seen['bare'])} rounds")
    for arm in ARMS[1:]:
        print(f"  {arm:<10} {percent(seen[arm], seen['bare'])}")


if __name__ == "__main__":
    main()
