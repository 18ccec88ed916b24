"""What ``hotlap speedup`` shows while it works. Everything to stderr: stdout belongs to results."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live as RichLive
from rich.text import Text

from hotlap.report import units

__all__ = ["Live"]

PLAIN_EVERY_S = 5.0
"""Without a terminal, progress is a log: this seldom, so that a CI log stays readable."""


class Live:
    """One line that changes (a terminal), or a plain line now and then; permanent lines accumulate above it.

    ``console`` defaults to stderr. Use as a context manager, or call :meth:`start` and :meth:`stop`; it works without
    either, the line then starts with the first :meth:`update`.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console if console is not None else Console(stderr=True)
        self._clock = clock
        self._live: RichLive | None = None
        self._last_plain: float | None = None

    def __enter__(self) -> Live:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Open the live line on a terminal; nothing elsewhere."""
        if self._live is None and self.console.is_terminal:
            # transient: the line is gone when the work is done, what line() printed stays
            self._live = RichLive(
                Text(""),
                console=self.console,
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def stop(self) -> None:
        """Take the live line away. May be called twice."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(
        self,
        stage: str,
        detail: str = "",
        arm: str = "",
        elapsed_s: float = 0.0,
        budget_s: float = 0.0,
        steps: int | None = None,
    ) -> None:
        """Say what is being done now. ``budget_s`` 0: no budget known; ``steps``: counted in this arm so far."""
        text = self._compose(stage, detail, arm, elapsed_s, budget_s, steps)
        if self.console.is_terminal:
            self.start()
            if self._live is not None:
                self._live.update(text, refresh=True)
            return
        now = self._clock()
        if self._last_plain is None or now - self._last_plain >= PLAIN_EVERY_S:
            self._last_plain = now
            self.console.print(text.plain, markup=False, highlight=False, soft_wrap=True)

    def line(self, text: str | Text) -> None:
        """Print a line that stays: a lever's result as soon as it is known."""
        if isinstance(text, str):
            text = Text(text)
        self.console.print(text, highlight=False, soft_wrap=not self.console.is_terminal)

    def _compose(self, stage: str, detail: str, arm: str, elapsed_s: float, budget_s: float, steps: int | None) -> Text:
        clock = _clock_text(elapsed_s)
        if budget_s > 0:
            clock += f"{' /' if elapsed_s <= budget_s else ', past'} {_clock_text(budget_s)}"
        out = Text(no_wrap=True, overflow="ellipsis")
        out.append(f" {clock} ", style="dim")
        if budget_s > 0 and self.console.is_terminal:
            filled = min(12, max(0, round(12 * elapsed_s / budget_s)))
            out.append("━" * filled, style="cyan").append("─" * (12 - filled) + " ", style="dim")
        out.append(f" {stage}", style="bold")
        if detail:
            out.append(f"  {detail}")
        extra = " · ".join(part for part in (arm, f"{units.count(steps)} steps" if steps is not None else "") if part)
        if extra:
            out.append(f"  {extra}", style="dim")
        return out


def _clock_text(value_s: float) -> str:
    whole = max(0, int(value_s))
    minutes, rest = divmod(whole, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"
