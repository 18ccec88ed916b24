"""Real comparisons whose truth is known: a script of busy waits against itself, and against itself with 3 % less."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotlap.lap.launches import Launches
from hotlap.lap.measure import Question, measure
from hotlap.lap.options import Options, Silent
from hotlap.lap.session import Session
from hotlap.machine.facts import read_machine
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import Trial
from hotlap.trial.arm import Arm

__all__ = ["compare_once", "real"]

BUSY = Path(__file__).resolve().parent / "busy.py"
STEP_MS = 20.0
TRUTHS = {"equal": 1.0, "3 % less to do": 1.03}
OVERHEAD_S = 12.0


def compare_once(seconds: float, truth: float, folder: Path) -> Trial:
    """The proof of `hotlap speedup`, over as many pairs of launches as its default."""

    def command(label: str) -> list[str]:
        return [sys.executable, str(BUSY), f"{STEP_MS / (truth if label == 'candidate' else 1.0):.6f}"]

    run = RunFolder.create("power", folder / "runs")
    pairs = Options([]).seeds
    options = Options(command("baseline"), budget_s=seconds + pairs * OVERHEAD_S)
    with Session(options, read_machine(), run, Silent()) as session:

        def arm(label: str, _: int) -> Arm:
            made = session.arm(label)
            made.spec = replace(made.spec, command=command(label))
            return made

        one, other = arm("baseline", 0), arm("candidate", 0)
        launches = Launches(measure(session, one, other, Question("power", seconds / pairs, whole=True)))
        session.discard(one)
        session.discard(other)
        launches.go_on(session, arm, pairs, 1.0)
    return launches.trial()


def real(n: int, seconds: float) -> dict[str, Any]:
    """``n`` comparisons of either kind: how many were claimed, and every interval."""
    out: dict[str, Any] = {}
    here = Path.cwd()
    for name, truth in TRUTHS.items():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                trials = [compare_once(seconds, truth, Path(folder)) for _ in range(n)]
            finally:
                os.chdir(here)
        found = [t.interval for t in trials if t.interval is not None]
        out[name] = {
            "n": n,
            "claimed": sum(i.low > 1.0 for i in found),
            "failed": n - len(found),
            "intervals": [[i.low, i.ratio, i.high] for i in found],
        }
    return out
