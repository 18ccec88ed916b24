"""What watching costs on a GPU: a loop of short steps bare, diagnosed and guarded, in interleaved runs.

    python bench/gpu/gpu_overhead.py --limit-s 80 --json FILE

Each run is a process of its own and times its own loop (gpu_loop.py). They start together, since starting takes far
longer than a loop, and then train in turn, one at a time, round after round, as long as the next one fits.
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
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from overhead import bootstrap, percent  # noqa: E402

from hotlap.cli.commands.run import GUARD_HITS_S, GUARD_STACK_HZ  # noqa: E402
from hotlap.inject.door import environment  # noqa: E402
from hotlap.records.call import Call  # noqa: E402
from hotlap.records.timeline import training_timeline  # noqa: E402

__all__ = ["ARMS", "Run", "figures", "main", "rounds"]

ARMS = ("bare", "bare again", "diagnosed", "guarded")
LOOP = {"steps": 250, "warm": 50, "width": 256, "depth": 20, "batch": 64}
"""A turn. Some hundred and fifty launches a step: milliseconds, bound by the host, which is where probes show."""
LEAST_ROUNDS = 5
"""Below them a range says nothing."""


class Run:
    """One process, from its start to its end."""

    def __init__(self, arm: str, loop: dict[str, Any], folder: Path) -> None:
        self._arm = arm
        self._timelines = Path(tempfile.mkdtemp(dir=folder))
        self._out, self._errors = (self._timelines.with_suffix(suffix) for suffix in (".json", ".txt"))
        env = dict(os.environ)
        if arm == "diagnosed":
            env = environment(Call(timeline_dir=str(self._timelines)), env)
        elif arm == "guarded":
            hz, hits_s = GUARD_STACK_HZ, GUARD_HITS_S
            call = Call(timeline_dir=str(self._timelines), mode="run", stack_hz=hz, hits_most_s=hits_s)
            env = environment(call, env)
        asked = {**loop, "gate": True, "out": str(self._out)}
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "gpu_loop.py"), json.dumps(asked)], env=env, cwd=folder, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def said(self) -> str:
        """Its next line. Raises SystemExit when it has ended instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self._failed()
        return line.strip()

    def turn(self) -> float:
        """Seconds per step of a turn."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self._failed()
        return float(self.said())

    def end(self) -> None:
        """Raises SystemExit when it failed, or when a watched run left no whole timeline."""
        self.process.communicate()
        if self.process.returncode:
            self._failed()
        if self._arm in ("diagnosed", "guarded"):
            timeline = training_timeline(self._timelines)
            steps = json.loads(self._out.read_text())["steps"]
            if timeline is None or timeline.n_steps != steps:
                raise SystemExit(f"The {self._arm} run left no whole timeline of its {steps} steps.")

    def _failed(self) -> NoReturn:
        raise SystemExit(f"{self._arm}: the loop ended with {self.process.wait()}: {self._errors.read_text()[-2000:]}")


def rounds(loop: dict[str, Any], limit_s: float, folder: Path) -> dict[str, list[float]]:
    """Round after round, every other one backwards, as long as the next one fits; one at least. The first, in which the
    device and its libraries warm up, is not counted where there are others."""
    begun = time.monotonic()
    runs = {arm: Run(arm, loop, folder) for arm in ARMS}
    seen: dict[str, list[float]] = {arm: [] for arm in ARMS}
    try:
        for run in runs.values():
            while run.said() != "ready":  # warnings come before it
                pass
        number, took = 0, 0.0
        while number == 0 or time.monotonic() - begun + took <= limit_s:
            at = time.monotonic()
            for arm in ARMS if number % 2 else ARMS[::-1]:
                seen[arm].append(runs[arm].turn())
            took, number = time.monotonic() - at, number + 1
            print(f"round {number}", {arm: f"{values[-1] * 1e3:.3f} ms" for arm, values in seen.items()}, flush=True)
        for run in runs.values():
            run.end()
    finally:
        for run in runs.values():
            run.process.kill()  # where one has failed: nothing happens to those that have ended
    return {arm: values[1:] or values for arm, values in seen.items()}


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
    if len(seen["bare"]) < LEAST_ROUNDS:
        raise SystemExit(f"Fewer rounds than {LEAST_ROUNDS} fitted into {args.limit_s:.0f} s: a range says nothing.")


if __name__ == "__main__":
    main()
