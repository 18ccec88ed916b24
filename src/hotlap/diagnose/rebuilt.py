"""Whether the training loader is constructed anew each epoch, and its data set with it."""

from __future__ import annotations

from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.diagnose.view import View
from hotlap.records.findings import Where
from hotlap.records.rows import Frame

__all__ = ["anew_each_step", "constructs", "data_set_anew", "times_rebuilt"]


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


def data_set_anew(view: View) -> tuple[float, StackBook]:
    """Seconds per step in which the data set is constructed again with the loader, and the samples of it.

    Those below the loader's line, or below an ``__init__`` that the function around it calls before.
    """
    residual = view.stacks.phase("residual")
    where = view.loader.where if view.loader and times_rebuilt(view) >= 2 else None
    if where is None or not residual.total():
        return 0.0, residual.where(lambda sample: False)
    place = where
    book = residual.where(lambda sample: constructs(sample, place) is not None)
    return view.seconds("residual") * book.total() / residual.total(), book


def constructs(sample: Sampled, loader: Where) -> Frame | None:
    """The frame that constructs the data set, of the function that holds the loader's line."""
    for i, frame in enumerate(sample.user):
        if (frame.file, frame.func) == (loader.file, loader.function):
            makes = any(called.func in ("__init__", "__post_init__") for called in sample.user[i + 1 : i + 2])
            return frame if frame.line == loader.line or (makes and frame.line < loader.line) else None
    return None


def anew_each_step(view: View) -> list[Where]:
    """The lines that begin a new pass for each batch, ``next(iter(loader))``; empty where passes have several."""
    every = view.times.epoch_start.every
    if every is None or every >= 2.0 or (view.loader and (view.loader.batches_per_epoch or 2) <= 2):
        return []
    return view.event_where("loader_start")
