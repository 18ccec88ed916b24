"""What watching costs: the loop time of a script bare and watched, in interleaved runs, and TraceML's on the same loop.

    python bench/overhead.py [--runs 10] [--traceml]

Times the loop inside the script (from step 50 to the end), and the whole process beside it. Each run is a process of
its own: probes put on and off within one empty the interpreter's caches, which costs more than the probes themselves.
``--traceml`` installs ``traceml-ai`` into an environment of its own, on top of the packages here, and follows its
documented use for a plain loop: ``traceml.init()``, ``trace_step``, ``traceml run``. Prints the medians with their
spread last.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from pathlib import Path

from results import save

from hotlap.inject.door import environment
from hotlap.records.call import Call
from hotlap.records.timeline import training_timeline

SCRIPT = """
import contextlib, os, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
if os.environ.get("TRACEML_LOOP"):
    import traceml_ai as traceml
    traceml.init(mode="auto")
    def traced(model): return traceml.trace_step(model)
else:
    def traced(model): return contextlib.nullcontext()
steps, width, batch, out = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
opt, lossf = torch.optim.SGD(model.parameters(), lr=0.01), nn.CrossEntropyLoss()
n = 100 * batch
data = DataLoader(TensorDataset(torch.randn(n, 64), torch.randint(0, 10, (n,))), batch, shuffle=True)
step, total = 0, 0.0
while step < steps:
    for x, y in data:
        with traced(model):
            opt.zero_grad()
            loss = lossf(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item()
        step += 1
        if step == 50:
            begun = time.perf_counter()
        if step >= steps:
            break
with open(out, "w") as file:
    file.write(str((time.perf_counter() - begun) / (steps - 50)))
"""

LOOPS = {"2 ms": (1050, 512, 112), "50 ms": (150, 2048, 384)}
"""Steps, width of the model, batch; step times as on the machine of the published figures."""


def traceml_command(folder: Path) -> list[str]:
    """An environment with TraceML over the packages of this one; the command that runs a script under it."""
    home = folder / "traceml-env"
    venv.create(home, with_pip=True)
    subprocess.run([home / "bin/pip", "install", "-q", "traceml-ai"], check=True)
    site = next((home / "lib").glob("python*/site-packages"))
    (site / "here.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return [str(home / "bin/traceml"), "run"]


def once(arm: str, script: Path, loop: tuple[int, int, int], folder: Path, traceml: list[str]) -> tuple[float, float]:
    """One run: seconds per step inside the loop, seconds of the whole process."""
    out = folder / "seconds"
    arguments = [*map(str, loop), str(out)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(script), *arguments]
    timelines = Path(tempfile.mkdtemp(dir=folder))
    if arm == "hotlap":
        env = environment(Call(timeline_dir=str(timelines)), env)
    elif arm == "traceml":
        env["TRACEML_LOOP"] = "1"
        command = [*traceml, str(script), "--args", *arguments]
    out.unlink(missing_ok=True)
    begun = time.perf_counter()
    subprocess.run(command, env=env, cwd=folder, check=True, capture_output=True)
    whole = time.perf_counter() - begun
    if arm == "hotlap":
        timeline = training_timeline(timelines)
        if timeline is None or timeline.n_steps != loop[0]:
            raise SystemExit(f"The watched run left no whole timeline in {timelines}.")
    return float(out.read_text()), whole


def percent(values: list[float], bare: list[float]) -> str:
    """Median overhead of paired runs in percent, with the 95 % range of its bootstrap."""
    middle, low, high = bootstrap([100 * (v / b - 1) for v, b in zip(values, bare, strict=True)])
    return f"{middle:+.1f} % [{low:+.1f}, {high:+.1f}]"


def bootstrap(values: list[float]) -> tuple[float, float, float]:
    """Median, and the 2.5th and 97.5th percentile of its bootstrap."""
    rng = random.Random(0)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(1000))
    return statistics.median(values), medians[24], medians[975]


def main() -> None:
    """Interleave the arms, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="pairs of runs, in the order ABBA")
    parser.add_argument("--loop", choices=list(LOOPS), help="only this loop")
    parser.add_argument("--traceml", action="store_true")
    parser.add_argument("--save", action="store_true", help="write bench/results/overhead.json")
    options = parser.parse_args()
    lines: list[str] = []
    raw: dict[str, dict[str, list[tuple[float, float]]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "loop.py"
        script.write_text(SCRIPT)
        traceml = traceml_command(folder) if options.traceml else []
        arms = ["bare", "bare again", "hotlap"] + (["traceml"] if options.traceml else [])
        for label, loop in LOOPS.items():
            if options.loop not in (None, label):
                continue
            seen: dict[str, list[tuple[float, float]]] = {arm: [] for arm in arms}
            for run in range(options.runs):
                for arm in arms if run % 2 else arms[::-1]:
                    seen[arm].append(once(arm, script, loop, folder, traceml))
                print(f"{label} run {run + 1}/{options.runs}", {a: f"{v[-1][0] * 1e3:.3f} ms" for a, v in seen.items()})
            raw[label] = seen
            bare = [v[0] for v in seen["bare"]]
            whole = [v[1] for v in seen["bare"]]
            lines.append(f"{label} loop: bare step {statistics.median(bare) * 1e3:.2f} ms")
            for arm in arms[1:]:
                inside = percent([v[0] for v in seen[arm]], bare)
                lines.append(f"  {arm:<10} loop {inside}   whole process {percent([v[1] for v in seen[arm]], whole)}")
    if options.save:
        save("overhead", {"seconds_per_step_and_whole_process": raw, "told": lines})
    print("\n".join(lines))


if __name__ == "__main__":
    main()
