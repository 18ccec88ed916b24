"""W&B: figures ride along in the script's own next ``run.log``.

W&B counts a step per ``log`` and drops rows of a step that has passed. ``log(commit=False)`` from here would not count
one, but what waits uncommitted when the run ends becomes a row and a step of its own, and a run that is resumed then
refuses the script's next step. In a row that the script writes anyway nothing can move, and the series stand over the
same axis as the script's. The keys add some 50 us to one ``log`` in ten seconds.
"""

from __future__ import annotations

import functools
from typing import Any

from hotlap.inject.trackers.contract import TOLD, Unheard
from hotlap.probe.undo import Undo
from hotlap.records.figures import Figures

__all__ = ["MODULES", "WandB"]

MODULES = ("wandb.sdk.wandb_run",)


class WandB:
    """Holds the newest figures until the script logs."""

    def __init__(self, module: Any, undo: Undo) -> None:
        self.name = "W&B"
        self.given = 0
        self._waiting: tuple[Figures, dict[str, Any]] | None = None
        self._unheard = Unheard()
        undo.replace(module.Run, "log", self._riding(module.Run.log))

    def give(self, figures: Figures) -> None:
        """They wait for the next ``log``; what was still waiting is out of date, but for what was told of drifts."""
        row: dict[str, Any] = dict(figures.values)
        told = self._unheard.of(figures)
        if told:
            row[TOLD] = "\n".join(told)
        self._waiting = figures, row

    def _riding(self, original: Any) -> Any:
        @functools.wraps(original)
        def log(run: Any, *args: Any, **kwargs: Any) -> Any:
            if self._waiting is not None:
                args, kwargs = self._with_ours(args, kwargs)
            return original(run, *args, **kwargs)

        return log

    def _with_ours(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with a row that holds both; the script's own dictionary is left as it is."""
        theirs = args[0] if args else kwargs.get("data")
        waiting = self._waiting
        if type(theirs) is not dict or waiting is None:
            return args, kwargs
        self._waiting = None
        figures, ours = waiting
        self._unheard.have(figures)
        self.given += 1
        row = {**ours, **theirs}
        return ((row, *args[1:]), kwargs) if args else (args, {**kwargs, "data": row})
