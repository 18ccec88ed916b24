"""Does Hotlap claim what is not there? A script against itself, many times; and a script that has nothing to gain.

The first measures two identical arms through the machinery of `hotlap speedup`: an interval that excludes 1 is a false
claim. The second runs `hotlap speedup` on bench/healthy.py: no lever may be kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from results import save

from hotlap.lap.measure import Question, measure
from hotlap.lap.options import Options, Silent
from hotlap.lap.session import Session
from hotlap.machine.facts import read_machine
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import Trial

HERE = Path(__file__).resolve().parent
HEALTHY = HERE / "healthy.py"


def against_itself(command: list[str], trials: int, seconds: float) -> list[Trial]:
    """Each trial starts two arms of the same command afresh and compares them."""
    out = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for k in range(trials):
            run = RunFolder.create(f"honesty-{k}", Path(folder) / "runs")
            options = Options(command=command, budget_s=120.0)
            with Session(options, read_machine(), run, Silent()) as session:
                question = Question("itself", seconds, precision=0.0)
                trial = measure(session, session.arm("one"), session.arm("other"), question)
            out.append(trial)
            print(f"  {k + 1:2d}  {_told(trial)}", flush=True)
        os.chdir(HERE)
    return out


def _told(trial: Trial) -> str:
    if trial.interval is None:
        return f"{trial.status}: {trial.reason}"
    got = trial.interval
    claim = "  CLAIMED" if claimed(trial) else ""
    return f"{got.ratio:.3f}x [{got.low:.3f}, {got.high:.3f}] at {got.level}{claim}"


def claimed(trial: Trial) -> bool:
    """The interval excludes 1."""
    return trial.interval is not None and not trial.interval.low <= 1.0 <= trial.interval.high


def healthy(budget: str) -> dict[str, Any]:
    """`hotlap speedup` on a script at its roof: levers kept, and the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "out.json"
        command = [sys.executable, "-m", "hotlap", "speedup", "--json", str(file), "--budget", budget]
        command += ["--", sys.executable, str(HEALTHY)]
        subprocess.run(command, cwd=folder, check=True)
        got = json.loads(file.read_text())
    kept = [lever["id"] for lever in got["levers"] if lever["kept"]]
    return {"kept": kept, "verdict": got["verdict"], "claimed": got["claimed"],
            "causes": [finding["cause"] for finding in got["findings"]]}  # fmt: skip


def main() -> None:
    """Run both, print the figures last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=15.0, help="measuring time of each trial")
    parser.add_argument("--budget", default="150s", help="of hotlap speedup on the healthy script")
    parser.add_argument("--script", nargs="+", help="what to compare with itself (default: the healthy script)")
    parser.add_argument("--save", action="store_true", help="write bench/results/honesty.json")
    args = parser.parse_args()
    well = healthy(args.budget)
    trials = against_itself(args.script or [sys.executable, str(HEALTHY)], args.trials, args.seconds)
    measured = [trial for trial in trials if trial.interval is not None]
    false = sum(claimed(trial) for trial in measured)
    level = measured[0].interval.level if measured and measured[0].interval else None
    if args.save:
        intervals = [[t.interval.low, t.interval.ratio, t.interval.high] for t in measured if t.interval]
        save("honesty", {"healthy": well, "intervals": intervals, "false_claims": false, "level": level})
    print(f"healthy script: kept {well['kept'] or 'nothing'} · {well['verdict']}")
    print(f"a script against itself: {false} false claims in {len(measured)} of {len(trials)} trials (level {level})")


if __name__ == "__main__":
    main()
