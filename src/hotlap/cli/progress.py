"""How far a long command is: a bar with rate and remaining time, on stderr, and nothing where that is no terminal.

It is drawn by those who report, not by a thread of its own: of a process of one thread, packing starts its helpers at
once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hotlap.cli.console import console

__all__ = ["bar", "meter"]

DRAWN_S = 0.1
"""Between two drawings."""


def bar() -> Progress:
    """Where meters are drawn, while it is open."""
    out = console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
               TimeElapsedColumn(), TimeRemainingColumn())  # fmt: skip
    return Progress(*columns, console=out, transient=True, auto_refresh=False, disable=not out.is_terminal)


def meter(shown: Progress, name: str, rate: Callable[[float], str] = lambda speed: "") -> Callable[[int, int], None]:
    """What shows (done, in all) as a line of ``shown``, from the first call on; ``rate`` words how much a second."""
    shown.add_task(name, rate="", visible=False)
    task = shown.tasks[-1]
    drawn = float("-inf")

    def report(done: int, total: int) -> None:
        nonlocal drawn
        if shown.disable or (time.monotonic() < drawn + DRAWN_S and done < total):
            return
        drawn = time.monotonic()
        speed = rate(task.speed) if task.speed else ""
        shown.update(task.id, completed=done, total=total, rate=speed, visible=True, refresh=True)

    return report
