"""One turn of one way of feeding, or one writing of the data set, in a process of its own; ``loader.py`` starts these.

python bench/loader_turn.py '{"what": "feed", …}'      prints a JSON object last
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from host_memory import private_bytes
from loader_data import pack_of
from loader_ffcv import FFCV
from loader_memory import read_large
from loader_rivals import RIVALS, Rival, rival_ways
from loader_ways import Memmap, Way, plain_ways

__all__ = ["ALL_RIVALS", "step", "ways", "writers"]

ALL_RIVALS: tuple[Rival, ...] = (*RIVALS, *FFCV)
WIDTH = 384
"""Of the matrices a made-up training step multiplies: two cores need about a millisecond for one."""


def ways(kind: str, usable: tuple[Rival, ...]) -> dict[str, Way]:
    """Every way of feeding this kind of data."""
    return plain_ways(kind) | rival_ways(usable, kind)


def writers(kind: str, usable: tuple[Rival, ...]) -> dict[str, Callable[[Path, Path], None]]:
    """Every form the data set is written in: the name of its folder -> (files' folder, target)."""

    def ours(folder: Path, target: Path, variant: str) -> None:
        pack_of(folder, kind, variant, target)

    variants = ("planar", "interleaved", "encoded") if kind == "images" else ("planar",)
    found: dict[str, Callable[[Path, Path], None]] = {v: partial(ours, variant=v) for v in variants}
    found["memmap"] = partial(Memmap.write, kind=kind)
    return found | {r.name: partial(r.write, kind=kind) for r in usable if r.write and kind in r.kinds}


def _cpu_s() -> float:
    """Of all processes of a way, those that have ended included."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def step(multiplications: int) -> Callable[[], None]:
    """A made-up training step."""
    import torch

    a, b = torch.randn(WIDTH, WIDTH), torch.randn(WIDTH, WIDTH)

    def compute() -> None:
        for _ in range(multiplications):
            torch.mm(a, b)

    return compute


def multiplication_s() -> float:
    """The quickest of some: whatever disturbs makes it longer, never shorter."""
    compute, times = step(10), []
    for _ in range(30):
        begun = time.perf_counter()
        compute()
        times.append(time.perf_counter() - begun)
    return min(times) / 10


def _size(batch: Any) -> int:
    while not hasattr(batch, "shape"):
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    return int(batch.shape[0])


def feed(way: Callable[[], Any], seconds: float, multiplications: int) -> dict[str, float]:
    """Warm up for an epoch, then count."""
    compute = step(multiplications)
    base = private_bytes(own=True)
    begun, first_s = time.perf_counter(), None
    opened = way()
    for _ in opened:
        if first_s is None:
            first_s = time.perf_counter() - begun
        compute()
        if time.perf_counter() - begun - first_s > 3 * seconds:
            break  # a slow way needs no whole epoch to warm up
    if first_s is None:
        raise RuntimeError("it gave no batch at all")
    samples, gaps, peak = 0, [], base
    begun, cpu_s = time.perf_counter(), _cpu_s()
    while time.perf_counter() - begun < seconds:
        epoch, is_first = time.perf_counter(), True
        for batch in opened:
            if is_first:
                gaps.append(time.perf_counter() - epoch)
                is_first = False
            compute()
            samples += _size(batch)
            if time.perf_counter() - begun > seconds:
                break
        peak = max(peak, private_bytes(own=True))
    wall_s, cpu_s = time.perf_counter() - begun, _cpu_s() - cpu_s
    return {"samples_per_s": samples / wall_s, "cpu_s_per_1000": 1000 * cpu_s / samples, "first_batch_s": first_s,
            "epoch_start_s": statistics.median(gaps), "anonymous_bytes": peak - base}  # fmt: skip


def write(writer: Callable[[Path, Path], None], folder: Path, target: Path) -> dict[str, float]:
    """Write the data set once."""
    begun, cpu_s = time.perf_counter(), _cpu_s()
    writer(folder, target)
    wall_s = time.perf_counter() - begun
    size = sum(p.stat().st_size for p in target.rglob("*") if p.is_file())
    return {"wall_s": wall_s, "cpu_s": _cpu_s() - cpu_s, "disk_bytes": size}


def main() -> None:
    """Do what the JSON in the first argument says."""
    asked = json.loads(sys.argv[1])
    usable = tuple(r for r in ALL_RIVALS if r.name in asked["usable"])
    folder, kind = Path(asked["folder"]), asked["kind"]
    if asked["what"] == "step":
        done = {"multiplication_s": multiplication_s()}
    elif asked["what"] == "limit":
        done = read_large(folder, asked["name"], asked["seconds"])
    elif asked["what"] == "write":
        done = write(writers(kind, usable)[asked["name"]], folder, Path(asked["target"]))
    else:
        way = partial(ways(kind, usable)[asked["name"]], folder)
        done = feed(way, asked["seconds"], asked["multiplications"])
    print("\n" + json.dumps(done), flush=True)
    os._exit(0)  # some libraries hang in their own clean-up; every child is ended by the caller's group


if __name__ == "__main__":
    main()
