"""``--on-drift CMD``: the user's own command, once per drift, with the facts in its environment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from hotlap.records.guard import Alarm

__all__ = ["Hook", "facts"]

END_S = 20.0
"""How long a command may go on when the run has ended."""


def facts(alarm: Alarm, message: str, run: Path) -> dict[str, str]:
    """The environment variables of one drift."""
    where = alarm.where[0] if alarm.where else None
    return {
        "HOTLAP_DRIFT_CAUSE": alarm.cause,
        "HOTLAP_DRIFT_PHASE": alarm.phase,
        "HOTLAP_DRIFT_WHERE": f"{where.file}:{where.line}" if where is not None else "",
        "HOTLAP_DRIFT_STEP": str(alarm.at_step),
        "HOTLAP_DRIFT_BEFORE_S": repr(alarm.before_s),
        "HOTLAP_DRIFT_AFTER_S": repr(alarm.after_s),
        "HOTLAP_DRIFT_RATIO": repr(alarm.after_s / max(alarm.before_s, 1e-12)),
        "HOTLAP_DRIFT_MESSAGE": message,
        "HOTLAP_RUN": str(run),
    }


class Hook:
    """Runs the command beside the script, in a session of its own; what it prints goes to ``on-drift.log``."""

    def __init__(self, command: str, run: Path) -> None:
        self.command = command
        self.log = run / "on-drift.log"
        self._run = run
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, alarm: Alarm, message: str) -> None:
        """Start it; nobody waits for it here."""
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                self.command,
                shell=True,
                env={**os.environ, **facts(alarm, message, self._run)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append(process)

    def ended(self) -> list[str]:
        """What there is to say of commands that have ended since the last call."""
        gone = [p for p in self._running if p.poll() is not None]
        self._running = [p for p in self._running if p not in gone]
        return [f"--on-drift: the command exited with {p.returncode} (see {self.log})" for p in gone if p.returncode]

    def finish(self, patience_s: float = END_S) -> list[str]:
        """The run has ended: wait for commands that still work, and end those that take too long."""
        until = time.monotonic() + patience_s
        for process in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(0.0, until - time.monotonic()))
        said = ["--on-drift: the command was still working when the run had ended, and was stopped"] * self.stop()
        return [*self.ended(), *said]

    def stop(self) -> int:
        """End at once what still works, with all that it has started; how many there were."""
        late = [process for process in self._running if process.poll() is None]
        for process in late:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._running = [process for process in self._running if process not in late]
        return len(late)
