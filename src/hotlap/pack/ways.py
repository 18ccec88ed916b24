"""``hotlap pack bench``: one pack, read in every way there is here, in turn, so that neighbours hit all alike."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hotlap.pack.dataset import PackedDataset, as_is
from hotlap.pack.loader import Loader
from hotlap.pack.reader import Pack
from hotlap.pack.settings import LoaderSettings
from hotlap.pack.views.clip import Clip
from hotlap.pack.views.contract import View
from hotlap.pack.views.image import Image

__all__ = ["Measured", "compare_ways", "default_views"]

Views = Mapping[str, View | None]
Endless = Iterator[int]
"""Batches without end, as the number of samples in each."""


@dataclass(frozen=True)
class Measured:
    """One way of reading."""

    name: str
    samples_per_s: float
    cpu_s_per_sample: float | None
    """None: the work is in processes of its own, whose time is not counted here."""


def default_views(pack: Pack, crop: tuple[int, int] | None, clip: int | None) -> dict[str, View | None]:
    """A training's usual reading: crops of images, clips of recordings, everything else as stored."""
    views: dict[str, View | None] = {}
    for name, column in pack.columns.items():
        is_image = column.dtype == "uint8" and len(column.shape) == 3 and column.kind == "tensor"
        if is_image or (crop is not None and column.kind == "bytes"):
            views[name] = Image(crop, flip=0.5)
        elif clip is not None and column.kind == "ragged" and not column.shape:
            views[name] = Clip(clip)
        else:
            views[name] = None
    return views


def compare_ways(pack: Pack, batch: int, views: Views, budget_s: float = 20.0, rounds: int = 5,
                 progress: Callable[[str], None] | None = None) -> list[Measured]:  # fmt: skip
    """Medians over ``rounds`` turns of each way, quickest first."""
    ways = {name: open_way() for name, open_way in _ways(pack, batch, views).items()}
    turn_s = budget_s / rounds / len(ways)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for way in ways.values():
        next(way)  # start-up is not throughput
    for _ in range(rounds):
        for name, way in ways.items():
            if progress is not None:
                progress(name)
            found[name].append(_turn(way, turn_s))
    table = []
    for name, turns in found.items():
        apart = "workers" in name
        cpu_s = None if apart else statistics.median(cpu for _, cpu in turns)
        table.append(Measured(name, statistics.median(rate for rate, _ in turns), cpu_s))
    return sorted(table, key=lambda m: -m.samples_per_s)


def _turn(way: Endless, turn_s: float) -> tuple[float, float]:
    next(way)  # what was made ahead while other ways had their turn
    begun, cpu, samples = time.perf_counter(), time.process_time(), 0
    while not samples or time.perf_counter() - begun < turn_s:  # one batch at least, however short the turn
        samples += next(way)
    return samples / (time.perf_counter() - begun), (time.process_time() - cpu) / samples


def _endless(loader: Any) -> Endless:
    for _ in itertools.count():
        for batch in loader:
            first = next(v for v in batch.values() if hasattr(v, "__len__"))
            yield len(first)


def _ways(pack: Pack, batch: int, views: Views) -> dict[str, Callable[[], Endless]]:
    from torch.utils.data import DataLoader

    def ours(mode: str, threads: int = 1) -> Callable[[], Endless]:
        return lambda: _endless(Loader(pack, batch, views, settings=LoaderSettings(mode=mode, threads=threads)))

    def theirs(workers: int, whole: bool) -> Callable[[], Endless]:
        data: Any = PackedDataset(pack.folder, views) if whole else _PerSample(PackedDataset(pack.folder, views))
        more = {"collate_fn": as_is} if whole else {"collate_fn": _lists}
        keep = workers > 0
        return lambda: _endless(
            DataLoader(data, batch, shuffle=True, num_workers=workers, persistent_workers=keep, **more)
        )

    return {
        "hotlap.pack, inline": ours("inline"),
        "hotlap.pack, background thread": ours("background"),
        "hotlap.pack, 2 background threads": ours("background", 2),
        "DataLoader, whole batches": theirs(0, True),
        "DataLoader, whole batches, 2 workers": theirs(2, True),
        "DataLoader, sample by sample": theirs(0, False),
        "DataLoader, sample by sample, 2 workers": theirs(2, False),
    }


class _PerSample:
    """Hides ``__getitems__``: what a plain data set has."""

    def __init__(self, data: PackedDataset) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._data[index]


def _lists(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """torch's collate where shapes agree, lists elsewhere."""
    import torch

    batch: dict[str, Any] = {}
    for name in samples[0]:
        values = [s[name] for s in samples]
        alike = all(isinstance(v, torch.Tensor) and v.shape == values[0].shape for v in values)
        batch[name] = torch.stack(values) if alike else values
    return batch
