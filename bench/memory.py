"""Memory that watching adds to the script's process, in a long run of tiny steps: bare against watched.

    python bench/memory.py [--steps 100000]

The script reads its own peak (VmHWM) at its end. Prints the difference last.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from results import save

from hotlap.inject.door import environment
from hotlap.records.call import Call

SCRIPT = """
import sys
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.001)
x = torch.randn(8, 8)
for step in range(int(sys.argv[1])):
    opt.zero_grad()
    model(x).sum().backward()
    opt.step()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
LIMIT_MB = 60.0


def peak_mb(steps: int, folder: Path, watched: bool) -> float:
    """Peak resident memory of one run, in MB."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    if watched:
        env = environment(Call(tempfile.mkdtemp(dir=folder)), env)
    command = [sys.executable, "-c", SCRIPT, str(steps)]
    done = subprocess.run(command, env=env, cwd=folder, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1]) * 1024 / 1e6


def main() -> None:
    """Run both, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--save", action="store_true", help="write bench/results/memory.json")
    options = parser.parse_args()
    steps = options.steps
    with tempfile.TemporaryDirectory() as name:
        bare, watched = (peak_mb(steps, Path(name), arm) for arm in (False, True))
    if options.save:
        save("memory", {"steps": steps, "bare_mb": bare, "watched_mb": watched, "added_mb": watched - bare})
    print(f"{steps:,} steps: bare {bare:.0f} MB, watched {watched:.0f} MB")
    verdict = "below" if watched - bare <= LIMIT_MB else "ABOVE"
    print(f"watching adds {watched - bare:.1f} MB ({verdict} the limit of {LIMIT_MB:.0f} MB)")


if __name__ == "__main__":
    main()
