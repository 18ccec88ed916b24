"""TensorBoard: the event file of the first ``SummaryWriter`` that the script has open (torch's or tensorboardX's).

Figures go to the writer's own file writer as one event, so that its queue (10 events by default) is not filled; the
queue's thread writes to disk. ``SummaryWriter.add_scalar`` would open a new event file for a writer that was closed
meanwhile; a closed file writer refuses instead. The step of our series is the number of steps made.
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from typing import Any

from hotlap.inject.trackers.contract import TOLD, Unheard
from hotlap.probe.own_frames import strip
from hotlap.probe.undo import Undo
from hotlap.records.figures import Figures

__all__ = ["MODULES", "TensorBoard"]

MODULES = ("torch.utils.tensorboard.writer", "tensorboardX.writer")


class TensorBoard:
    """Knows the writers that were made since the module was imported."""

    def __init__(self, module: Any, undo: Undo) -> None:
        self.name = "tensorboardX" if module.__name__.startswith("tensorboardX") else "TensorBoard"
        self.given = 0
        self._module = module
        self._made: list[tuple[int, weakref.ref[Any]]] = []
        self._unheard: weakref.WeakKeyDictionary[Any, Unheard] = weakref.WeakKeyDictionary()
        kind = module.SummaryWriter
        undo.replace(kind, "__init__", self._watched(kind.__init__))

    def _watched(self, original: Any) -> Any:
        made = self._made

        @functools.wraps(original)
        def __init__(writer: Any, *args: Any, **kwargs: Any) -> None:
            try:
                original(writer, *args, **kwargs)
            except BaseException as err:
                strip(err)
                raise
            made.append((os.getpid(), weakref.ref(writer)))

        return __init__

    def give(self, figures: Figures) -> None:
        """One event with all series; one more per drift."""
        if _mirrored():
            return
        writer = self._open()
        if writer is None:
            return
        unheard, make = self._unheard.setdefault(writer, Unheard()), self._module
        file = writer.file_writer
        if file is None:  # closed a moment ago
            return
        summaries = [make.scalar(name, value) for name, value in figures.values.items()]
        for summary in summaries[1:]:
            summaries[0].MergeFrom(summary)
        for summary in [*summaries[:1], *(make.text(TOLD, line) for line in unheard.of(figures))]:
            file.add_summary(summary, figures.step)
        unheard.have(figures)
        self.given += 1

    def _open(self) -> Any:
        """The first writer of this process that is not closed: a script's other ones are made later, for less."""
        self._made[:] = [made for made in self._made if made[1]() is not None]
        for pid, reference in self._made:
            writer = reference()
            if pid == os.getpid() and getattr(writer, "file_writer", None) is not None:
                return writer
        return None


def _mirrored() -> bool:
    """W&B copies event files (``sync_tensorboard=True``): an event of ours would be a row, and a step, of its run."""
    patched = getattr(sys.modules.get("wandb"), "patched", None)
    return bool(patched and patched.get("tensorboard"))
