"""From the loader onto the device: samples/s of every way that needs no other library than the loader's own.

    python bench/gpu/gpu_copies.py --limit-s 40 --json FILE

Images of 3x112x112 as uint8 lie in one array on disk; each way puts batches of 256 as float32 on the device, shuffled.
The limit is the bus: one pinned batch copied again and again. A way that fails is told with its reason.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

__all__ = ["BATCH", "Rows", "main", "rate", "summary", "ways"]

COUNT, SHAPE, BATCH = 12_000, (3, 112, 112), 256
LIMIT, OURS = "one pinned batch, copied", "hotlap.pack on the device"
OURS_BYTES = "hotlap.pack, bytes, made floats on the device"
Way = Callable[[], Iterator[torch.Tensor]]


class Rows(Dataset[torch.Tensor]):
    """The array by whole batches: the best a DataLoader does without a library."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self._rows)

    def __getitems__(self, indices: list[int]) -> torch.Tensor:
        return torch.from_numpy(self._rows[np.sort(indices)]).float().div_(255)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.__getitems__([index])[0]


def _as_is(batch: torch.Tensor) -> torch.Tensor:
    return batch


def _loader(path: Path, device: str, workers: int, pinned: bool) -> Way:
    data: DataLoader[torch.Tensor] = DataLoader(
        Rows(path), BATCH, shuffle=True, drop_last=True, num_workers=workers, persistent_workers=workers > 0,
        pin_memory=pinned, collate_fn=_as_is,  # type: ignore[arg-type]
    )  # fmt: skip
    return lambda: (batch.to(device, non_blocking=pinned) for batch in data)


def _again(device: str, pinned: bool) -> Way:
    batch = torch.rand(BATCH, *SHAPE)
    batch = batch.pin_memory() if pinned else batch
    return lambda: (batch.to(device, non_blocking=pinned) for _ in range(100))


def _ours(path: Path, device: str, as_bytes: bool) -> Way:
    from hotlap.pack import Image, Loader, PackSettings, open_source, pack

    target = path.with_suffix(".pack")
    if not target.exists():
        pack(open_source(str(path)), target, PackSettings(processes=1))
    image = Image(dtype=torch.uint8) if as_bytes else Image(mean=0.0, std=255.0)
    loader = Loader(target, BATCH, {"data": image}, device=device, drop_last=True)
    return lambda: (batch["data"].float().div_(255) if as_bytes else batch["data"] for batch in loader)


def ways(path: Path, device: str) -> dict[str, Callable[[], Way]]:
    """By name; each is made when its turn comes for the first time."""
    workers = min(8, len(os.sched_getaffinity(0)))
    pinned = device == "cuda"
    return {
        LIMIT: partial(_again, device, pinned),
        "one pageable batch, copied": partial(_again, device, False),
        "DataLoader, 0 workers": partial(_loader, path, device, 0, False),
        f"DataLoader, {workers} workers": partial(_loader, path, device, workers, False),
        f"DataLoader, {workers} workers, pinned, non-blocking": partial(_loader, path, device, workers, pinned),
        OURS: partial(_ours, path, device, False),
        OURS_BYTES: partial(_ours, path, device, True),
    }


def rate(way: Way, seconds: float, wait: Callable[[], None]) -> float:
    """Samples/s that arrived on the device, over whole passes or until the time is up; one batch is passed before."""
    opened = way()
    next(opened)
    wait()
    begun, samples = time.perf_counter(), 0
    while True:
        for batch in opened:
            samples += len(batch)
            if time.perf_counter() - begun >= seconds:
                wait()
                return samples / (time.perf_counter() - begun)
        opened = way()


def summary(seen: dict[str, list[float]], failed: dict[str, str]) -> dict[str, Any]:
    """Medians with the lowest and the highest, and each way's share of the limit."""
    limit = statistics.median(seen[LIMIT]) if seen.get(LIMIT) else None
    rows = {}
    for name, values in seen.items():
        if values and name not in failed:
            middle = statistics.median(values)
            rows[name] = {"samples_per_s": middle, "lowest": min(values), "highest": max(values), "turns": len(values),
                          "of_limit": middle / limit if limit else None}  # fmt: skip
    return {"ways": rows, "failed": failed, "batch": BATCH, "bytes_per_sample": 4 * int(np.prod(SHAPE))}


def play(path: Path, device: str, seconds: float, limit_s: float) -> dict[str, Any]:
    """Rounds of all ways, as long as the next one fits; one at least."""
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    known, made = ways(path, device), {}
    seen: dict[str, list[float]] = {name: [] for name in known}
    failed: dict[str, str] = {}
    begun, number = time.monotonic(), 0
    while number == 0 or (time.monotonic() - begun) * (number + 1) / number <= limit_s:
        for name, make in known.items():
            if name in failed:
                continue
            try:
                made[name] = made.get(name) or make()
                seen[name].append(rate(made[name], seconds, wait))
            except Exception as err:  # a way's failure is a figure of its own
                failed[name] = f"{type(err).__name__}: {err}"
        number += 1
    return summary(seen, failed)


def main() -> None:
    """Make the array, play, tell, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit-s", type=float, default=40.0)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a turn")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: to try the bench out")
    parser.add_argument("--count", type=int, default=COUNT)
    args = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, np.random.default_rng(0).integers(0, 256, (args.count, *SHAPE), dtype=np.uint8))
        found = play(path, args.device, args.seconds, args.limit_s - (time.monotonic() - begun))
    args.json.write_text(json.dumps(found))
    for name, row in sorted(found["ways"].items(), key=lambda entry: -entry[1]["samples_per_s"]):
        share = "" if row["of_limit"] is None else f"{100 * row['of_limit']:5.1f} % of the limit"
        print(f"{name:50} {row['samples_per_s']:12,.0f} samples/s {share}")
    for name, why in found["failed"].items():
        print(f"{name:50} failed: {why}")
    if found["failed"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
