"""Whether the training loader is constructed anew each epoch."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Where

__all__ = ["anew_each_step", "times_rebuilt"]


EPOCHS_EACH = 3
"""Epochs of one loader from which on it is not made anew each epoch, but each fold or run, say."""


def times_rebuilt(view: View) -> int:
    """How often the training loader was constructed at its line; 0 or 1: once, for many epochs each, or not known."""
    where = view.loader.where if view.loader else None
    if where is None:
        return 0
    counts = [0]
    for row in view.setting_rows("loader_made"):
        made = next(iter(view.setting_where(row)), None)
        if made is not None and (made.file, made.line) == (where.file, where.line):
            counts.append(int(row.value.get("count") or 0))
    most = max(counts)
    return most if EPOCHS_EACH * most > view.times.epoch_start.count else min(most, 1)


def anew_each_step(view: View) -> list[Where]:
    """The lines that begin a new pass for each batch, ``next(iter(loader))``; empty where passes have several."""
    every = view.times.epoch_start.every
    if every is None or every >= 2.0 or (view.loader and (view.loader.batches_per_epoch or 2) <= 2):
        return []
    return view.event_where("loader_start")
