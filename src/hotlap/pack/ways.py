"""``hotlap pack bench``: one pack, read in every way there is here, in turn, so that neighbours hit all alike."""

from __future__ import annotations

import random
import signal
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from hotlap.pack.dataset import PackedDataset, as_is
from hotlap.pack.loader import Loader
from hotlap.pack.reader import Pack
from hotlap.pack.rival_ways import rivals_here
from hotlap.pack.settings import LoaderSettings
from hotlap.pack.views.clip import Clip
from hotlap.pack.views.contract import View
from hotlap.pack.views.convert import tells_channels
from hotlap.pack.views.image import Image
from hotlap.pack.views.plain import Whole
from hotlap.pack.way import Batch, FirstRows, Reading, Views, Way, endless, said, worker_ways
from hotlap.records.errors import HotlapError

__all__ = ["Comparison", "Measured", "compare_ways", "default_views"]

_PER_WAY_S = 3.0
_MOST_QUIET_S = 2.0
"""Between two turns."""

Running = dict[str, Generator[int, None, None]]
"""Name of a way -> the number of samples in each of its batches, without end."""


@dataclass(frozen=True)
class Measured:
    """One way of reading."""

    name: str
    samples_per_s: float
    cpu_s_per_sample: float | None
    """None: the work is in processes of its own, whose time is not counted here."""


@dataclass(frozen=True)
class Comparison:
    """All ways, and what there is to say of them."""

    table: list[Measured]
    """Quickest first."""
    rows: int
    """How many rows of the pack were read, by every way: the first ones."""
    libraries: list[str]
    """Those whose ways were timed, with versions."""
    missing: list[str]
    """Those that are not installed."""
    told: list[str]
    """Why something is not timed that is installed; a line each."""


def default_views(pack: Pack, crop: tuple[int, int] | None, clip: int | None) -> dict[str, View | None]:
    """A training's usual reading: crops of images, clips of recordings, everything else as stored."""
    views: dict[str, View | None] = {}
    for name, column in pack.columns.items():
        is_array = column.dtype == "uint8" and len(column.shape) == 3 and column.kind == "tensor"
        if (is_array and tells_channels(column.shape)) or (crop is not None and column.kind == "bytes"):
            views[name] = Image(crop, flip=0.5)
        elif clip is not None and column.kind == "ragged" and not column.shape:
            views[name] = Clip(clip)
        else:
            views[name] = None
    return views


def compare_ways(pack: Pack, batch: int, views: Views, budget_s: float | None = None, rounds: int = 5,
                 tell: Callable[[str], None] | None = None, copies: bool = True) -> Comparison:  # fmt: skip
    """Medians over ``rounds`` turns of each way, in ``budget_s`` seconds (None: 3 for each way).

    ``copies``: also libraries that need a copy of the data, which is written first (told by ``tell``) and removed.
    """
    if not len(pack):
        raise HotlapError(f"{pack.folder} has no rows: there is nothing to time.")
    for name, view in views.items():
        (view or Whole()).open(pack, name, batch)  # what does not fit is said before anything is written
    with rivals_here(Reading(pack, batch, views, len(pack)), tell or (lambda line: None), copies) as found:
        ways = {way.name: way for way in [*_own_ways(found.reading), *found.ways]}
        running = {name: _samples(way) for name, way in ways.items()}
        try:
            processes_first = sorted(
                ways.values(), key=lambda way: not way.apart
            )  # none is forked from threads at work
            _in_turn(processes_first, running, lambda way: _start(running[way.name]), found.told)
            turn_s = (_PER_WAY_S * len(ways) if budget_s is None else budget_s) / rounds / len(ways)
            turns = _take_turns(ways.values(), running, rounds, turn_s, batch, found.told)
        except BaseException as err:
            traceback.clear_frames(err.__traceback__)  # which keep the loader at work, and so its workers
            raise
        finally:
            for samples in running.values():
                samples.close()
        named = dict.fromkeys(ways[name].library for name in ways if name in running)
        libraries = [library for library in named if library is not None]
        table = [_measured(ways[name], turns[name]) for name in running]
        table.sort(key=lambda measured: -measured.samples_per_s)
        return Comparison(table, found.reading.rows, libraries, found.missing, found.told)


def _measured(way: Way, turns: list[tuple[float, float]]) -> Measured:
    cpu_s = None if way.apart else statistics.median(cpu for _, cpu in turns)
    return Measured(way.name, statistics.median(rate for rate, _ in turns), cpu_s)


def _samples(way: Way) -> Generator[int, None, None]:
    """The number of samples in each batch."""
    for batch in way.open():
        yield len(next(value for value in batch.values() if hasattr(value, "__len__")))


def _start(samples_of: Iterator[int]) -> None:
    """The first batch: start-up is not throughput.

    Ctrl-C is held back meanwhile. Raised within a fork Python drops it, and a lock that threads wait for stays taken.
    """
    if threading.current_thread() is not threading.main_thread():  # which hears no signals
        next(samples_of)
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        next(samples_of)
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
        if heard:
            signal.raise_signal(signal.SIGINT)


def _take_turns(found_ways: Iterable[Way], running: Running, rounds: int, turn_s: float, batch: int,
                told: list[str]) -> dict[str, list[tuple[float, float]]]:  # fmt: skip
    """(samples/s, CPU s per sample) of each turn. Each round has an order of its own, should a way disturb the next."""
    ways, draw = list(found_ways), random.Random(0)
    found: dict[str, list[tuple[float, float]]] = {way.name: [] for way in ways}

    def turn(way: Way) -> None:
        found[way.name].append(_turn(running[way.name], turn_s, way.ahead))
        samples_per_s = found[way.name][-1][0]
        time.sleep(min(way.ahead * batch / samples_per_s, _MOST_QUIET_S))  # it makes its batches ahead again

    for _ in range(rounds):
        _in_turn(draw.sample(ways, len(ways)), running, turn, told)
    return found


def _in_turn(ways: list[Way], running: Running, act: Callable[[Way], object],
             told: list[str]) -> None:  # fmt: skip
    """``act`` for each way that runs. Another library's failure ends its way alone."""
    for way in ways:
        if way.name not in running:
            continue
        try:
            act(way)
        except Exception as err:
            if way.library is None:
                raise
            told.append(f"{way.name}: not timed ({way.library}: {said(err)})")
            running.pop(way.name).close()


def _turn(samples_of: Iterator[int], turn_s: float, ahead: int = 0) -> tuple[float, float]:
    for _ in range(ahead + 1):  # what was made ahead while other ways had their turn
        next(samples_of)
    begun, cpu, samples = time.perf_counter(), time.process_time(), 0
    while not samples or time.perf_counter() - begun < turn_s:  # one batch at least, however short the turn
        samples += next(samples_of)
    return samples / (time.perf_counter() - begun), (time.process_time() - cpu) / samples


def _own_ways(reading: Reading) -> list[Way]:
    """Hotlap's, and torch's over the pack."""
    from torch.utils.data import DataLoader

    def ours(mode: str, threads: int = 1) -> Iterator[Batch]:
        settings, order = LoaderSettings(mode=mode, threads=threads), FirstRows(reading.rows)
        return endless(Loader(reading.pack, reading.batch, reading.views, order, settings=settings))

    def theirs(whole: bool, how: dict[str, Any]) -> Any:
        data: Any = PackedDataset(reading.pack.folder, reading.views)
        data, collate = (data, as_is) if whole else (_PerSample(data), _lists)
        return DataLoader(data, reading.batch, sampler=reading.shuffled(), collate_fn=collate, **how)

    ahead = LoaderSettings().ahead
    library = f"torch {torch.__version__}"  # its workers may fail where ours run: shared memory is short in a container
    return [
        Way("hotlap.pack, inline", partial(ours, "inline")),
        Way("hotlap.pack, background thread", partial(ours, "background"), ahead),
        Way("hotlap.pack, 2 background threads", partial(ours, "background", 2), ahead + 1),
        *worker_ways("DataLoader, whole batches", library, partial(theirs, True)),
        *worker_ways("DataLoader, sample by sample", library, partial(theirs, False)),
    ]


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
    batch: dict[str, Any] = {}
    for name in samples[0]:
        values = [s[name] for s in samples]
        alike = all(isinstance(v, torch.Tensor) and v.shape == values[0].shape for v in values)
        batch[name] = torch.stack(values) if alike else values
    return batch
