"""How many steps an epoch has: its samples over those of a step. Backwards are no batches."""

from __future__ import annotations

from hotlap.diagnose.steady import Steady
from hotlap.records.findings import LoaderFacts
from hotlap.records.timeline import Timeline

__all__ = ["steps_per_epoch"]


def steps_per_epoch(timeline: Timeline, loader: LoaderFacts | None, steady: Steady) -> float | None:
    """None: the loader does not say how long its epochs are.

    Where samples are not known, or are those of several loaders together, each backward counts as a batch.
    """
    if loader is None or not loader.batches_per_epoch:
        return None
    told = [row for row in steady.rows if row.s > 0]
    if told and loader.batch_size and not _several(timeline):
        per_step = sum(row.s for row in told) / sum(row.n for row in told)
        return _samples(loader, loader.batches_per_epoch, loader.batch_size) / per_step
    micro = max(1.0, sum(row.m for row in steady.rows) / max(1, steady.steps))
    return loader.batches_per_epoch / micro


def _samples(loader: LoaderFacts, batches: int, batch_size: int) -> int:
    """Of an epoch. Its last batch may hold less than the others."""
    most = batches * batch_size
    length = loader.dataset_len
    return length if length is not None and most - batch_size < length <= most else most


def _several(timeline: Timeline) -> bool:
    """Whether more than one loader is trained on."""
    rows = (row.value for row in timeline.setting if row.name == "loader" and row.value.get("training") is True)
    return len({value.get("id") for value in rows}) > 1
