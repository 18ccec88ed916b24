"""The packed-data loader beside every other way of feeding that is installed here, in one run.

    python bench/loader.py [--kind images|audio] [--rounds 5] [--seconds 3] [--step-ms 0] [--only TEXT] [--save]

The data sets are made by the script: 10,000 photo-like 160x160 JPEGs read as 112x112 crops, mirrored half of the time,
float32; 2,000 recordings of four seconds read as clips of two. Ways take turns, each turn in a process of its own after
one epoch to warm up; medians over the turns. ``--step-ms 30`` feeds a training that computes on all cores: its roof is
the same steps on a resident batch. CPU time and anonymous memory count all processes of a way. A way that cannot be
imported is named as missing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from loader_data import make

__all__ = ["main", "turn"]

COUNT = {"images": 10_000, "audio": 2_000}
PACKAGES = ("torch", "numpy", "pillow", "simplejpeg", "spdl-core", "torchdata", "nvidia-dali-cuda120", "datasets",
            "ffcv", "webdataset", "litdata", "mosaicml-streaming")  # fmt: skip
WIDTH = 768
"""Of the matrices a made-up training step multiplies."""


def _processes() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def _cpu_s() -> float:
    return sum(t.user + t.system for t in (p.cpu_times() for p in _processes()))


def _anonymous_bytes() -> int:
    total = 0
    for process in _processes():
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                total += int(line.split()[1]) * 1024
    return total


def _step(multiplications: int) -> Callable[[], None]:
    import torch

    a, b = torch.randn(WIDTH, WIDTH), torch.randn(WIDTH, WIDTH)

    def compute() -> None:
        for _ in range(multiplications):
            torch.mm(a, b)

    return compute


def _multiplications(step_ms: float) -> int:
    """How many make a step of this length, alone on the machine."""
    if step_ms == 0:
        return 0
    compute, times = _step(10), []
    for _ in range(20):
        begun = time.perf_counter()
        compute()
        times.append(time.perf_counter() - begun)
    return max(1, round(10 * step_ms / 1000 / statistics.median(times)))


def _size(batch: Any) -> int:
    while not hasattr(batch, "shape"):
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    return int(batch.shape[0])


def turn(kind: str, name: str, folder: Path, seconds: float, multiplications: int) -> dict[str, float]:
    """One turn of one way, in this process."""
    from loader_ways import WAYS

    compute = _step(multiplications)
    base = _anonymous_bytes()
    begun = time.perf_counter()
    way = WAYS[kind][name](folder)
    first_s = None
    for _ in way:
        first_s = first_s or time.perf_counter() - begun
        compute()
        if time.perf_counter() - begun > 3 * seconds:
            break  # a slow way needs no whole epoch to warm up
    samples, gaps, peak = 0, [], base
    begun, cpu_s = time.perf_counter(), _cpu_s()
    while time.perf_counter() - begun < seconds:
        epoch = time.perf_counter()
        is_first = True
        for batch in way:
            if is_first:
                gaps.append(time.perf_counter() - epoch)
                is_first = False
            compute()
            samples += _size(batch)
            if time.perf_counter() - begun > seconds:
                break
        peak = max(peak, _anonymous_bytes())
    wall_s, cpu_s = time.perf_counter() - begun, _cpu_s() - cpu_s
    return {"samples_per_s": samples / wall_s, "cpu_s_per_1000": 1000 * cpu_s / samples,
            "first_batch_s": first_s or 0.0,
            "epoch_start_s": statistics.median(gaps), "anonymous_bytes": peak - base}  # fmt: skip


def _in_process(kind: str, name: str, folder: Path, seconds: float, multiplications: int) -> dict[str, float] | str:
    command = [sys.executable, __file__, "--turn", name, "--kind", kind, "--folder", str(folder), "--seconds",
               str(seconds), "--multiplications", str(multiplications)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it died"])[-1]
    return {k: float(v) for k, v in json.loads(done.stdout.splitlines()[-1]).items()}


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _table(turns: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, Any]]:
    table = {}
    for name, found in turns.items():
        middle = {key: statistics.median(t[key] for t in found) for key in found[0]}
        rates = sorted(t["samples_per_s"] for t in found)
        table[name] = {**middle, "samples_per_s_range": [rates[0], rates[-1]], "turns": len(found)}
    return dict(sorted(table.items(), key=lambda entry: -entry[1]["samples_per_s"]))


def _show(table: dict[str, dict[str, Any]], failed: dict[str, str]) -> None:
    print(f"{'way':36} {'samples/s':>10} {'cpu ms/1000':>12} {'first ms':>9} {'epoch ms':>9} {'anon MB':>8}")
    for name, row in table.items():
        print(f"{name:36} {row['samples_per_s']:10,.0f} {1000 * row['cpu_s_per_1000']:12.1f} "
              f"{1000 * row['first_batch_s']:9.0f} {1000 * row['epoch_start_s']:9.1f} "
              f"{row['anonymous_bytes'] / 1e6:8.0f}")  # fmt: skip
    for name, reason in failed.items():
        print(f"{name:36} failed: {reason}")


def compare(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All rounds of all ways."""
    from loader_ways import WAYS

    multiplications = _multiplications(args.step_ms)
    names = [n for n in WAYS[args.kind] if args.only in n]
    turns: dict[str, list[dict[str, float]]] = {}
    failed: dict[str, str] = {}
    for number in range(args.rounds):
        for name in names:
            if name in failed:
                continue
            found = _in_process(args.kind, name, folder, args.seconds, multiplications)
            if isinstance(found, str):
                failed[name] = found
            else:
                turns.setdefault(name, []).append(found)
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    table = _table(turns)
    _show(table, failed)
    return {"kind": args.kind, "step_ms": args.step_ms, "ways": table, "failed": failed, "versions": _versions(),
            "cores": len(os.sched_getaffinity(0))}  # fmt: skip


def main() -> None:
    """Make the data, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("images", "audio"), default="images")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a turn")
    parser.add_argument("--step-ms", type=float, default=0.0, help="length of a training step beside it")
    parser.add_argument("--count", type=int, help="samples in the data set")
    parser.add_argument("--only", default="", help="ways whose name contains this")
    parser.add_argument("--folder", type=Path, help="where the data set is kept (default: made anew)")
    parser.add_argument("--save", action="store_true", help="keep the figures in bench/results")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    parser.add_argument("--multiplications", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.turn:
        print(json.dumps(turn(args.kind, args.turn, args.folder, args.seconds, args.multiplications)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)) / args.kind
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, args.kind, args.count or COUNT[args.kind], len(os.sched_getaffinity(0)))
        figures = compare(args, folder)
    if args.save:
        from results import save

        beside = f"_beside_{args.step_ms:g}ms" if args.step_ms else ""
        print(save(f"loader_{args.kind}{beside}", figures))


if __name__ == "__main__":
    main()
