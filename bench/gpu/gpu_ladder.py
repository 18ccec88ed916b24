"""The five reference trainings on the GPU, slow against fast, and each one's roof.

    python bench/gpu/gpu_ladder.py --limit-s 375 --json FILE [--only WORKLOAD ...]

A turn is bench/ladder.py's, without evaluations and checkpoints. Starting takes far longer than a turn: all processes
prepare side by side, and then each is measured alone, round after round, as long as the next round fits.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from ladder import TIMES, TOGETHER, arms, asked_of, show  # noqa: E402
from ladder_figures import figures  # noqa: E402
from ladder_turn import Target  # noqa: E402
from loader_rounds import Turn  # noqa: E402

from hotlap_workloads.catalogue import NAMES  # noqa: E402

__all__ = ["ORDER", "Runner", "documents", "main", "play", "write"]

ORDER = ("speaker_verify", "twin_verify", "face_distill", "anti_spoof", "tiny_detr")
"""Those of short turns come first: more of them fit where not all do."""
SCRIPT = HERE.parent / "ladder_turn.py"
PREPARING = 0.45
"""Of the time, at most."""
TURN = 0.12
"""Of the time; a slow preset whose turn takes longer is left out."""
STEPS = 4
"""Of a short epoch: half of bench/ladder.py's, since a slow preset's step takes as long as its loading."""


class Runner:
    """A process that prepares, and then takes turns."""

    def __init__(self, workload: str, name: str, asked: dict[str, Any], folder: Path) -> None:
        self.workload, self.name = workload, name
        self.turns: list[Turn] = []
        self.failed = ""
        self._errors = folder / f"{workload}-{name[:4]}.txt"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(SCRIPT), json.dumps({**asked, "gate": True})], text=True, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """All the time: one that is ready while another is waited for has been ready in time."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _said(self, until: float, wanted: str) -> str | None:
        """Its next line that begins so. None when it ended, or said none in time: then it is ended."""
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self.failed = "it was not done in time"
                break
            if line.startswith(wanted):
                return line
            if not line:
                self.failed = self._last_words()
                break
        self.end()
        return None

    def _last_words(self) -> str:
        lines = self._errors.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it died without a word"

    def prepared(self, until: float) -> None:
        self._said(until, "ready")

    def turn(self, until: float) -> None:
        if self.failed:
            return
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        line = self._said(until, "{")
        if line is not None:
            self.turns.append({key: float(value) for key, value in json.loads(line).items()})

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def runners(names: Sequence[str], target: Target, folder: Path, seconds: float) -> list[Runner]:
    """Slow and fast of each, as bench/ladder.py --ends has them."""
    found = []
    for workload in names:
        asked = argparse.Namespace(workload=workload, set=[], data=None, ends=True, presets=False, steps=STEPS,
                                   times=TIMES, seconds=seconds)  # fmt: skip
        for name, settings in arms(asked, target)[1].items():
            out = folder / f"{workload}-{name[:4]}"
            found.append(Runner(workload, name, asked_of(asked, target, settings, out, False), folder))
    return found


def play(found: Sequence[Runner], limit_s: float, each: Callable[[], None] = lambda: None) -> None:
    """Wait for all to prepare; then rounds of all that have not failed, as long as the next one fits. ``each`` is
    called after every turn."""
    begun = time.monotonic()
    end = begun + limit_s
    for runner in found:
        runner.prepared(begun + PREPARING * limit_s)
    print(f"prepared after {time.monotonic() - begun:.0f} s", flush=True)
    took, number = 0.0, 0
    while number == 0 or time.monotonic() + took <= end:
        at = time.monotonic()
        for runner in found:
            runner.turn(min(end, time.monotonic() + TURN * limit_s))
            each()
        took, number = time.monotonic() - at, number + 1
        if all(runner.failed for runner in found):
            break
        print(f"round {number} after {time.monotonic() - begun:.0f} s", flush=True)


def documents(found: Sequence[Runner]) -> dict[str, Any]:
    """By workload: the rows of slow and fast, and why one is missing. A turn counts where the other has its own."""
    document: dict[str, Any] = {}
    for workload in dict.fromkeys(runner.workload for runner in found):
        of = {runner.name: runner for runner in found if runner.workload == workload}
        rounds = min(len(runner.turns) for runner in of.values())
        missing = {name: runner.failed or "no time was left for it" for name, runner in of.items() if not runner.turns}
        rows = figures(["slow", TOGETHER], {name: runner.turns[:rounds] for name, runner in of.items()})
        document[workload] = {"rows": rows, "failed": missing}
    return document


def write(found: Sequence[Runner], file: Path) -> dict[str, Any]:
    """After every turn: what was measured is there though the time runs out."""
    document = documents(found)
    file.write_text(json.dumps(document))
    return document


def main() -> int:
    """Play, tell, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit-s", type=float, default=375.0)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: to try the bench out")
    parser.add_argument("--only", nargs="+", choices=sorted(NAMES), help="these trainings")
    parser.add_argument("--seconds", type=float, default=1.0, help="least length of a window, and of the roof's")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = [name for name in ORDER if name in (args.only or ORDER)]
        found = runners(names, Target(args.device), Path(folder), args.seconds)
        try:
            play(found, args.limit_s, lambda: write(found, args.json))
        finally:
            for runner in found:
                runner.end()
    document = write(found, args.json)
    for workload, told in document.items():
        print(f"\n{workload}")
        if told["rows"]:
            show(told["rows"], {})
        for name, why in told["failed"].items():
            print(f"FAILED {name}: {why}")
    return 1 if any(told["failed"] for told in document.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
