"""SIGTERM and Ctrl-C ask a training to stop: note it, finish the step, save."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from hotlap_workloads.errors import EXIT_INTERRUPTED, EXIT_TERMINATED, WorkloadError

__all__ = ["StopSignal"]

STOPS = {signal.SIGTERM: ("SIGTERM", EXIT_TERMINATED), signal.SIGINT: ("Ctrl-C", EXIT_INTERRUPTED)}
NOTED = b"Stopping and saving as soon as this step is over; Ctrl-C again stops at once.\n"


class StopSignal:
    """``asked`` becomes True at SIGTERM or Ctrl-C while the context is open; at its end all is as before.

    A second Ctrl-C is a KeyboardInterrupt, as without this. ``says``: whether this process tells of the first one.
    """

    def __init__(self, says: bool = True) -> None:
        self._says = says
        self._came: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    @property
    def asked(self) -> bool:
        return self._came is not None

    def stopped(self, step: int) -> WorkloadError:
        """The error that ends a training, saved after this step. A signal of another rank is taken for SIGTERM."""
        what, exit_code = STOPS[self._came or signal.SIGTERM]
        return WorkloadError(
            f"Stopped by {what} after step {step}, and saved.", "The same command goes on from there.", exit_code
        )

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            # a shell's background jobs ignore Ctrl-C, which is meant for what runs in the foreground
            wanted = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._note) for number in wanted}
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, tb: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before or signal.SIG_DFL)  # None: one from C, which Python cannot put back

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if self._came is not None:
                raise KeyboardInterrupt
            if self._says:
                os.write(2, NOTED)  # print may be at work just where the signal came
        self._came = self._came or signal.Signals(number)
