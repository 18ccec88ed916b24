"""Ways of feeding that need no other library: ours, torch's DataLoader over files or a memory map, and the limits."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from loader_data import BATCH, CLIP, CROP, SIDE, read, samples
from loader_samples import collate

from hotlap.pack import Clip, Flat, Image, Loader, LoaderSettings

__all__ = ["IN_TURN", "LIMIT", "PURE_TORCH", "ROOF", "Again", "Memmap", "Way", "as_is", "batches", "plain_ways"]

Way = Callable[[Path], Any]
LIMIT = "memcpy of the batch"
IN_TURN = "memcpy into four buffers in turn"
"""A loader writes where nobody reads any more: its buffers lie in memory, where those of :data:`LIMIT` may stay in the
last-level cache."""
ROOF = "resident batch"
PURE_TORCH = "hotlap.pack pure torch"
"""Our ways without the compiled kernel."""


def _ours(
    folder: Path,
    kind: str,
    variant: str,
    mode: str,
    threads: int | None = None,
    layout: str = "nchw",
    fused: bool = True,
) -> Loader:
    if not fused:
        os.environ["HOTLAP_FUSED"] = "0"  # read when a batch first asks for the kernel
    views: dict[str, Any] = {
        "images": {"image": Image(CROP, flip=0.5, layout=layout)},
        "audio": {"audio": Clip(CLIP)},
        "boxes": {"image": Image(layout=layout), "boxes": Flat()},
    }[kind]
    settings = LoaderSettings(mode=mode, threads=threads)
    label = {} if kind == "boxes" else {"label": None}
    return Loader(folder / variant, BATCH[kind], {**views, **label}, drop_last=True, settings=settings)


class _Files:
    """A plain data set: open, decode, crop, mirror, sample by sample."""

    def __init__(self, folder: Path, kind: str, quick: bool) -> None:
        self._samples, self._kind, self._quick = list(samples(folder, kind)), kind, quick

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Any:
        sample = self._samples[index]
        raw = read(sample["path"]) if self._quick else _pillow(sample["path"])
        return (raw, sample["boxes"]) if self._kind == "boxes" else raw


def _pillow(path: Path) -> np.ndarray[Any, Any]:
    from PIL import Image as Picture

    return np.asarray(Picture.open(path).convert("RGB")).transpose(2, 0, 1)


class Memmap:
    """Decoded rows in one array on disk, read by whole batches: the best a DataLoader does without a library."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._rows, self._kind = np.load(folder / "memmap" / "rows.npy", mmap_mode="r"), kind
        if kind == "boxes":
            self._boxes = np.load(folder / "memmap" / "boxes.npy", mmap_mode="r")
            self._ends = np.load(folder / "memmap" / "ends.npy")

    @staticmethod
    def write(folder: Path, target: Path, kind: str) -> None:
        """What somebody who packs by hand does: decode one by one into one array."""
        target.mkdir()
        found = list(samples(folder, kind))
        shape = (CLIP * 2,) if kind == "audio" else (3, SIDE[kind], SIDE[kind])
        dtype = np.int16 if kind == "audio" else np.uint8
        kept = np.lib.format.open_memmap(target / "rows.npy", "w+", dtype, (len(found), *shape))
        for k, sample in enumerate(found):
            kept[k] = read(sample["path"])
        kept.flush()
        if kind == "boxes":
            np.save(target / "boxes.npy", np.concatenate([s["boxes"] for s in found]))
            np.save(target / "ends.npy", np.cumsum([0, *(len(s["boxes"]) for s in found)]))

    def __len__(self) -> int:
        return len(self._rows)

    def _one(self, index: int) -> Any:
        if self._kind != "boxes":
            return self._rows[index]
        return self._rows[index], self._boxes[self._ends[index] : self._ends[index + 1]]

    def __getitems__(self, indices: list[int]) -> Any:
        return collate(self._kind, [self._one(k) for k in indices])

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])


def as_is(batch: Any) -> Any:
    """For ``collate_fn`` where the batch is one already."""
    return batch


def _data_loader(folder: Path, kind: str, data: str, workers: int) -> Any:
    from torch.utils.data import DataLoader

    keep: dict[str, Any] = {"num_workers": workers, "persistent_workers": workers > 0, "drop_last": True}
    if data == "memmap":
        return DataLoader(Memmap(folder, kind), BATCH[kind], shuffle=True, collate_fn=as_is, **keep)  # type: ignore[arg-type]
    files: Any = _Files(folder, kind, data == "quick")
    return DataLoader(files, BATCH[kind], shuffle=True, collate_fn=partial(collate, kind), **keep)


class Again:
    """A function of the epoch's shuffled indices as something that can be iterated over again and again."""

    def __init__(self, count: int, epoch: Callable[[list[int]], Iterator[Any]]) -> None:
        self._count, self._epoch = count, epoch

    def __iter__(self) -> Iterator[Any]:
        return self._epoch(torch.randperm(self._count).tolist())


def batches(order: list[int], size: int) -> list[list[int]]:
    """Whole batches of an order."""
    return [order[k : k + size] for k in range(0, len(order) - size + 1, size)]


def _resident(folder: Path, kind: str, buffers: int) -> Any:
    """No loading at all: one batch in memory, copied each time into one of ``buffers`` (the limit of any loader), or
    given as it is (0: a training's roof)."""
    shape = {"images": (3, *CROP), "audio": (CLIP,), "boxes": (3, SIDE["boxes"], SIDE["boxes"])}[kind]
    batch = torch.randn(BATCH[kind], *shape)
    turn = itertools.cycle([torch.empty_like(batch) for _ in range(buffers)] or [batch])

    def epoch(order: list[int]) -> Iterator[torch.Tensor]:
        for _ in batches(order, BATCH[kind]):
            yield next(turn).copy_(batch) if buffers else batch

    return Again(8000, epoch)


def plain_ways(kind: str) -> dict[str, Way]:
    """By name; a name's first word is the library. "JPEG" names what decodes while it feeds."""
    limits = {LIMIT: 1, IN_TURN: 4, ROOF: 0}
    ways: dict[str, Way] = {name: partial(_resident, kind=kind, buffers=count) for name, count in limits.items()}
    for mode, threads in (("inline", None), ("background", 1), ("background", 2), ("auto", None)):
        own = partial(_ours, kind=kind, variant="planar", mode=mode, threads=threads)
        name = mode if threads is None else f"{mode} {threads}"
        ways[f"hotlap.pack {name}"] = own
        ways[f"{PURE_TORCH} {name}"] = partial(own, fused=False)
    file = "WAV" if kind == "audio" else "JPEG"
    for workers in (0, 2):
        ways[f"DataLoader memmap __getitems__ {workers}"] = partial(
            _data_loader, kind=kind, data="memmap", workers=workers
        )
        ways[f"DataLoader {file} {workers}"] = partial(_data_loader, kind=kind, data="quick", workers=workers)
    if kind == "images":
        ways["DataLoader JPEG Pillow 2"] = partial(_data_loader, kind=kind, data="plain", workers=2)
        last = {"kind": kind, "variant": "interleaved", "mode": "background", "layout": "channels_last"}
        jpeg = partial(_ours, kind=kind, variant="encoded")
        for threads in (1, 2):
            ways[f"hotlap.pack channels-last {threads}"] = partial(_ours, **last, threads=threads)
            ways[f"{PURE_TORCH} channels-last {threads}"] = partial(_ours, **last, threads=threads, fused=False)
            ways[f"hotlap.pack JPEG {threads}"] = partial(jpeg, mode="background", threads=threads)
        ways["hotlap.pack JPEG auto"] = partial(jpeg, mode="auto")
    return ways
