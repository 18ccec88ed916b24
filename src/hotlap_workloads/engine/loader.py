"""The DataLoader over the rest of an epoch, and what is done with its batches."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from torch.utils.data import DataLoader, default_collate

from hotlap_workloads.engine.order import Draw, Position, RankBatches
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.engine.task import Task
from hotlap_workloads.errors import WorkloadError, first_line

__all__ = ["Feeder", "ahead", "as_batch", "collated", "in_order", "loading", "outlive_signals", "to_device"]

T = TypeVar("T")


def outlive_signals(worker: int) -> None:
    """For ``worker_init_fn``. A SIGTERM to the whole process group (``timeout``, Slurm) and a Ctrl-C are the training's
    to answer: it ends its loading processes, by a SIGTERM of its own, once it has saved."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "sigwaitinfo"):  # not on a Mac
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_end_when_told, args=(os.getppid(),), daemon=True).start()


def _end_when_told(parent: int) -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != parent:
        pass
    os._exit(0)


@contextmanager
def loading() -> Iterator[None]:
    """A loading process that was killed is a WorkloadError; torch raises a RuntimeError in the midst of anything."""
    try:
        yield
    except RuntimeError as err:
        said = first_line(err).rstrip(".")
        if not said.startswith("DataLoader worker"):
            raise
        hint = "Mostly the memory was full: fewer workers or a lower prefetch_factor take less, workers=0 has none."
        raise WorkloadError(f"A loading process was ended from outside ({said}).", hint) from err


class _RestOfEpoch:
    """The batch sampler of a loader that outlives its epoch: asks the feeder for the batches of now."""

    def __init__(self) -> None:
        self.batches: RankBatches | None = None

    def __iter__(self) -> Any:
        return iter(self.batches or ())

    def __len__(self) -> int:
        return len(self.batches or ())


class Feeder:
    """Makes the batches of each epoch, by one DataLoader for the whole training."""

    def __init__(self, task: Task, settings: EngineSettings, ranks: Ranks, device: torch.device) -> None:
        self._task, self._settings, self._ranks, self._device = task, settings, ranks, device
        self._sampler = _RestOfEpoch()
        self._loader: DataLoader[Any] | None = None

    def batches(self, position: Position, batch_size: int) -> RankBatches:
        """What this rank still has to read of the epoch."""
        s, r = self._settings, self._ranks
        return RankBatches(self._task.order, s.seed, batch_size, position, r.rank, r.world, s.drop_last)

    def open(self, position: Position, batch_size: int) -> Iterator[Any]:
        """The batches of the rest of the epoch."""
        self._sampler.batches = self.batches(position, batch_size)
        if self._loader is None:
            self._loader = self._make()
        batches = iter(self._loader)
        count = 0 if self._settings.workers else self._settings.batches_ahead
        return ahead(batches, count, self._device) if count else batches

    def steps(self, position: Position, batch_size: int) -> Iterator[tuple[list[Any], list[int]]]:
        """The same, as the micro-batches of each step with how many rows they have; the last step may have fewer."""
        sizes = self.batches(position, batch_size).sizes()
        micro_batches: list[Any] = []
        rows: list[int] = []
        for micro_batch, size in zip(self.open(position, batch_size), sizes, strict=False):
            micro_batches.append(micro_batch)
            rows.append(size)
            if len(rows) == self._settings.accumulate:
                yield micro_batches, rows
                micro_batches, rows = [], []
        if rows and not self._settings.drop_last:
            yield micro_batches, rows

    def _make(self) -> DataLoader[Any]:
        s = self._settings
        return DataLoader(
            self._task.train_set,  # type: ignore[arg-type]
            batch_sampler=self._sampler,
            collate_fn=self._task.collate,
            num_workers=s.workers,
            prefetch_factor=s.prefetch_factor if s.workers else None,
            persistent_workers=s.persistent_workers,
            pin_memory=s.pin_memory and self._device.type == "cuda",
            worker_init_fn=outlive_signals,
            generator=torch.Generator(),  # of its own: a new loader must not draw from the training's random numbers
        )


def ahead(batches: Iterator[T], count: int, device: torch.device | None = None) -> Iterator[T]:
    """The same batches, ``count`` of them made by a thread before they are asked for; pinned for ``device``."""
    on_gpu = device is not None and device.type == "cuda"  # which one is current is each thread's own
    with ThreadPoolExecutor(1, "batches", partial(torch.cuda.set_device, device) if on_gpu else None) as thread:
        waiting = deque(thread.submit(next, batches, None) for _ in range(count))
        try:
            while (batch := waiting.popleft().result()) is not None:
                waiting.append(thread.submit(next, batches, None))
                yield batch
        finally:
            for one in waiting:
                one.cancel()


def in_order(
    data: Any,
    rows: Sequence[Any],
    batch_size: int,
    workers: int,
    pin: bool,
    collate: Callable[[list[Any]], Any] | None = None,
) -> DataLoader[Any]:
    """For an evaluation: these rows of the data, so many at once. The training's random numbers stay where they are."""
    return DataLoader(
        data,
        batch_size=batch_size,
        sampler=rows,
        num_workers=workers,
        collate_fn=collate,
        pin_memory=pin,
        worker_init_fn=outlive_signals,
        generator=torch.Generator(),
    )


def as_batch(batch: Any) -> Any:
    """For ``collate``, where ``__getitems__`` gives a batch that is one already."""
    return batch


def collated(task: Task, draws: Sequence[Draw]) -> Any:
    """The batch of these draws, made as a loader makes it, without one."""
    many = getattr(task.train_set, "__getitems__", None)
    samples = many(draws) if many else [task.train_set[draw] for draw in draws]
    return (task.collate or default_collate)(samples)


def to_device(batch: Any, device: torch.device, non_blocking: bool) -> Any:
    """The batch with its tensors on the device."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=non_blocking)
    if isinstance(batch, dict):
        return {key: to_device(part, device, non_blocking) for key, part in batch.items()}
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(part, device, non_blocking) for part in batch)
    return batch
