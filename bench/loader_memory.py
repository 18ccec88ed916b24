"""Data four times as large as the memory its reader may use: what of the disk's own rate arrives as batches.

The limit is a memory cgroup of its own (v1 or v2), which counts the page cache of what the group reads; a limit of the
address space would not. Where no group can be made, nothing is measured and the result says why.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from memory_group import entering, memory_group

__all__ = ["READERS", "compare_memory", "read_large"]

_ROW = (3, 160, 160)
_ROW_BYTES = 3 * 160 * 160
_BATCH = 128
_BLOCK_ROWS, _WINDOW = 64, 40
"""Blocks of 5 MB; a window of 40 of them (200 MB) is what must fit."""
_TIMES = 4
DISK = "disk, read in order"
PAST = "disk, read in order past the page cache"
READERS = (DISK, PAST, "hotlap.pack BlockShuffle", "hotlap.pack BlockShuffle, next epoch",
           "hotlap.pack Shuffle", "DataLoader memmap 0, the same blocks", "DataLoader memmap 0, shuffled")  # fmt: skip


class _Noise:
    """A source of rows that do not compress."""

    ragged: frozenset[str] = frozenset()

    def __init__(self, rows: int) -> None:
        self._rows, self.metadata = rows, {}  # type: int, dict[str, Any]
        self._pixels = np.random.default_rng(0).integers(0, 256, (2, *_ROW), dtype=np.uint8)

    def __len__(self) -> int:
        return self._rows

    def name(self, index: int) -> str:
        return str(index)

    def row(self, index: int) -> dict[str, Any]:
        return {"image": np.roll(self._pixels[index % 2].reshape(-1), index).reshape(_ROW), "label": index}

    def fingerprint(self) -> str:
        return f"noise {self._rows}"


def _make(folder: Path, rows: int) -> None:
    from hotlap.pack import PackSettings, pack

    if not (folder / "large.pack" / "pack.json").exists():
        pack(_Noise(rows), folder / "large.pack", PackSettings())
    path = folder / "large.npy"
    if not path.exists():
        kept, source = np.lib.format.open_memmap(path, "w+", np.uint8, (rows, *_ROW)), _Noise(rows)
        for k in range(rows):
            kept[k] = source.row(k)["image"]
        kept.flush()


def _forget(folder: Path) -> None:
    """The files' pages out of memory, so that a turn reads the disk."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _in_order(folder: Path) -> Iterator[int]:
    for path in sorted((folder / "large.pack").glob("*.arrow")):
        with open(path, "rb", buffering=0) as file:
            while block := file.read(4 << 20):
                yield len(block)


def _past_the_cache(folder: Path) -> Iterator[int]:
    """As the disk can be read at most: one reader, into the same huge pages again and again."""
    buffer = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    buffer.madvise(mmap.MADV_HUGEPAGE)
    for path in sorted((folder / "large.pack").glob("*.arrow")):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            while count := os.readv(handle, [buffer]):
                yield count
        finally:
            os.close(handle)


def _batches(folder: Path, name: str) -> Iterator[int]:
    import torch

    from hotlap.pack import BlockShuffle, Image, Loader, Pack, Shuffle

    pack = Pack(folder / "large.pack")
    order = BlockShuffle(0, _BLOCK_ROWS, _WINDOW) if "lock" in name else Shuffle(0)
    if name.startswith("hotlap"):
        loader = Loader(pack, _BATCH, {"image": Image(dtype=torch.uint8)}, order)
        for _ in range(1 + ("next" in name)):
            yield 0  # the clock starts anew
            for batch in loader:
                yield batch["image"].numel()
        return
    from torch.utils.data import DataLoader

    rows, count = np.load(folder / "large.npy", mmap_mode="r"), len(pack)
    data: Any = _Memmap(rows)
    for batch in DataLoader(data, _BATCH, sampler=order.rows(pack, 0)[:count].tolist(), collate_fn=_as_is):  # type: ignore[arg-type]
        yield batch.numel()


class _Memmap:
    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitems__(self, indices: list[int]) -> Any:
        import torch

        return torch.from_numpy(np.stack([self._rows[k] for k in indices]))


def _as_is(batch: Any) -> Any:
    return batch


def read_large(folder: Path, name: str, seconds: float) -> dict[str, float]:
    """One epoch, or as much of it as ``seconds`` allow. The first one of ours computes the checksums too."""
    begun, done, cpu_s = time.perf_counter(), 0, time.process_time()
    ways = {DISK: _in_order, PAST: _past_the_cache}
    for size in ways[name](folder) if name in ways else _batches(folder, name):
        done += size
        if size == 0:
            begun, done, cpu_s = time.perf_counter(), 0, time.process_time()
        if time.perf_counter() - begun > seconds:
            break
    wall_s = time.perf_counter() - begun
    return {"bytes_per_s": done / wall_s, "cpu_s_per_gb": (time.process_time() - cpu_s) / (done / 1e9)}


def compare_memory(folder: Path, rounds: int, limit_s: float, memory_mb: int) -> dict[str, Any]:
    """Every reader in turn inside the limit; ``of_disk`` is round by round."""
    from loader_rounds import Turn, medians, ratios, take_turns, turn

    limit_bytes = memory_mb << 20
    try:
        with memory_group(limit_bytes) as group:
            rows = _TIMES * limit_bytes // _ROW_BYTES
            _make(folder, rows)

            def play(name: str) -> Turn | str:
                _forget(folder)
                return turn({"what": "limit", "kind": "images", "name": name, "folder": str(folder), "usable": [],
                             "seconds": 20.0}, entering(group))  # fmt: skip

            turns, failed = take_turns(list(READERS), play, rounds, limit_s)
    except OSError as err:
        return {"not_measured": f"no memory cgroup can be made here: {err}"}
    table = medians(turns)
    of_disk = {name: ratios(found, turns[DISK], "bytes_per_s") for name, found in turns.items() if DISK in turns}
    for name, row in table.items():
        print(f"{name:40} {row['bytes_per_s'] / 1e6:8.0f} MB/s {of_disk[name]['median']:6.2f} of the disk")
    return {"limit_bytes": limit_bytes, "data_bytes": rows * _ROW_BYTES, "readers": table, "of_disk": of_disk,
            "failed": failed}  # fmt: skip
