"""A day of training, accelerated: does Hotlap's memory stay flat, and the timeline small?

Twice. First `hotlap run` for real, over as many steps as a day of 60 ms steps has, tiny ones: memory of the script and
of Hotlap with its guard, and of the same script without Hotlap. Then the guard alone, over a day of a made timeline
(soak_timeline.py): it looks every five seconds of the timeline's clock, as it would, drifts and alarms included.

Memory is sampled over the run; its first tenth is left out as warm-up. The slope is a straight line through the medians
of twenty stretches (neighbouring samples say the same), with its 95 % interval, in MiB a day.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from results import save
from scipy.stats import linregress, t
from soak_timeline import STEPS_PER_DAY, Made
from timeline_size import LIMIT_BYTES

from hotlap.guard.guard import LOOK_S, Guard, Wishes
from hotlap.machine.facts import read_machine
from hotlap.records.run_folder import RunFolder

SCRIPT = """
import sys
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.001)
x = torch.randn(8, 8)
for step in range(int(sys.argv[1])):
    if step == 2000:
        open("begun", "w").close()
    opt.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    opt.step()
    if step % 5000 == 4999:
        model.eval()
        with torch.no_grad():
            model(x)
        model.train()
    if step % 20000 == 19999:
        torch.save(model.state_dict(), "last.pt")
        print(step, loss.item(), flush=True)
"""
STRETCHES = 20
FLAT_MIB_PER_DAY = 16.0
"""A week of it is less than what importing torch takes."""
SAMPLE_S = 0.2


@dataclass(frozen=True)
class Slope:
    """Growth of memory, MiB a day, with its interval; and where it began and ended."""

    per_day: float
    low: float
    high: float
    first_mib: float
    last_mib: float

    @property
    def flat(self) -> bool:
        """Whether the growth, at the interval's upper end, is small."""
        return self.high <= FLAT_MIB_PER_DAY


def slope(samples: Sequence[tuple[float, float]]) -> Slope:
    """``samples``: (share of a day, bytes)."""
    kept = np.array(samples[len(samples) // 10 :])
    parts = np.array_split(kept, STRETCHES)
    x, y = np.array([np.median(part, axis=0) for part in parts]).T
    y = y / 2**20
    line = linregress(x, y)
    half = float(t.ppf(0.975, STRETCHES - 2)) * float(line.stderr)
    return Slope(float(line.slope), float(line.slope) - half, float(line.slope) + half, float(y[0]), float(y[-1]))


def _sampled(command: Sequence[str], folder: Path, day_share: float) -> dict[str, list[tuple[float, float]]]:
    """Memory over a run of ``command``: of its own process, and of the script below it where there is one."""
    with open(folder / "out.txt", "ab") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out,
                                   env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    own, seen = psutil.Process(process.pid), []
    while process.poll() is None and not (folder / "begun").exists():
        time.sleep(SAMPLE_S)
    (folder / "begun").unlink(missing_ok=True)
    began = time.monotonic()
    while process.poll() is None:
        try:
            below = own.children()
            rss = [own.memory_info().rss, below[0].memory_info().rss if below else 0]
        except psutil.NoSuchProcess:
            break
        seen.append((time.monotonic() - began, *rss))
        time.sleep(SAMPLE_S)
    took_s = time.monotonic() - began
    if process.wait() != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {(folder / 'out.txt').read_text()[-2000:]}")
    share = [(at / took_s * day_share, a, b) for at, a, b in seen]
    return {"own": [(s, a) for s, a, _ in share], "below": [(s, b) for s, _, b in share if b]}


def bare(steps: int) -> dict[str, float]:
    """The script by itself."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "soak.py").write_text(SCRIPT)
        found = _sampled([sys.executable, "soak.py", str(steps)], Path(name), steps / STEPS_PER_DAY)
    return vars(slope(found["own"]))


def watched(steps: int) -> dict[str, Any]:
    """The script under `hotlap run`."""
    day_share = steps / STEPS_PER_DAY
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "soak.py").write_text(SCRIPT)
        script = [sys.executable, "soak.py", str(steps)]
        found = _sampled([sys.executable, "-m", "hotlap", "run", "--", *script], folder, day_share)
        size = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
    return {"steps": steps, "script": vars(slope(found["below"])), "hotlap": vars(slope(found["own"])),
            "timeline_bytes": size}  # fmt: skip


def wait_for_look(watching: Guard, said: Sequence[str]) -> None:
    """Until the guard has looked once more. RuntimeError where it does not within a minute."""
    before, until = watching.status, time.monotonic() + 60
    while watching.status is before:  # each look makes a new one
        if time.monotonic() > until:
            raise RuntimeError(f"the guard looks no more: {said[-3:]}")
        time.sleep(0.0005)


def guard(hours: float, look_s: float) -> dict[str, Any]:
    """The guard over a made timeline: it looks once for every ``look_s`` seconds of it."""
    own, samples, said = psutil.Process(), [], []
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder.create("soak", Path(name))
        made = Made(folder.timeline_dir("run"))
        watching = Guard(folder, read_machine(), Wishes(said.append, look_s=0.0))
        watching.start(os.getpid())
        while made.made_s < 3600 * hours:
            made.advance(look_s)
            wait_for_look(watching, said)
            samples.append((made.made_s / 86_400, float(own.memory_info().rss)))
        watching.stop()
        size = made.path.stat().st_size
    if watching.notes:
        raise RuntimeError(f"the guard gave up: {watching.notes}")
    return {"hours": hours, "look_s": look_s, "looks": len(samples), "steps": made.steps, "guard": vars(slope(samples)),
            "lines_said": len(said), "timeline_bytes": size}  # fmt: skip


def _line(name: str, found: dict[str, float]) -> str:
    flat = "flat" if Slope(**found).flat else "NOT FLAT"
    return (f"{name}: {found['per_day']:+.2f} MiB a day [{found['low']:+.2f}, {found['high']:+.2f}], "
            f"{found['first_mib']:.0f} to {found['last_mib']:.0f} MiB: {flat}")  # fmt: skip


def main() -> int:
    """Both, figures last; 1 when memory grows or the timeline is too large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0, help="of training, at 60 ms a step (default: 24)")
    parser.add_argument("--look", type=float, default=LOOK_S, help="seconds of the made timeline between two looks")
    parser.add_argument("--skip-real", action="store_true", help="only the guard over a made timeline")
    parser.add_argument("--skip-guard", action="store_true", help="only `hotlap run` over so many real steps")
    parser.add_argument("--save", action="store_true", help="write bench/results/soak.json")
    args = parser.parse_args()
    steps = int(args.hours / 24 * STEPS_PER_DAY)
    with ProcessPoolExecutor(3, multiprocessing.get_context("spawn")) as pool:  # none of them is about time
        parts = [] if args.skip_real else [pool.submit(watched, steps), pool.submit(bare, steps)]
        looked = None if args.skip_guard else pool.submit(guard, args.hours, args.look)
        run = {**parts[0].result(), "bare_script": parts[1].result()} if parts else None
        guarded = None if looked is None else looked.result()
    figures = {"hours": args.hours, "run": run, "guard": guarded, "timeline_limit_bytes": LIMIT_BYTES,
               "flat_mib_per_day": FLAT_MIB_PER_DAY}  # fmt: skip
    if args.save:
        save("soak", figures)
    slopes = []
    if run is not None:
        slopes += [("script under hotlap run", run["script"]), ("hotlap run itself", run["hotlap"])]
        print(_line(f"the script alone, {run['steps']:,} steps", run["bare_script"]))
    if guarded is not None:
        slopes += [(f"guard over {args.hours:g} h, {guarded['looks']:,} looks", guarded["guard"])]
        print(f"the guard said {guarded['lines_said']} lines")
    sizes = [found["timeline_bytes"] for found in (run, guarded) if found is not None]
    for name, found in slopes:
        print(_line(name, found))
    print(f"timeline: {', '.join(f'{size / 2**20:.1f} MiB' for size in sizes)}, at most {LIMIT_BYTES / 2**20:.0f} MiB")
    return int(any(not Slope(**found).flat for _, found in slopes) or max(sizes) > LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main())
