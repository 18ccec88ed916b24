"""Does Hotlap claim what is not there? Scripts against themselves, many times; and a script with nothing to gain.

The first measures two identical arms through the proof of `hotlap speedup`, each launched four times: an interval that
excludes 1 is a false claim. Half of the trials are on bench/healthy.py, half on the same with glibc's allocator left as
it is, whose launches differ among each other. The second runs `hotlap speedup` on bench/healthy.py: no lever may be
kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

from results import save

from hotlap.lap.launches import Launches
from hotlap.lap.measure import Question, measure
from hotlap.lap.options import Options, Silent
from hotlap.lap.session import Session
from hotlap.machine.facts import read_machine
from hotlap.proof.speedup import LEVEL, pair_log_ratios
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import Trial

HERE = Path(__file__).resolve().parent
HEALTHY = HERE / "healthy.py"
SCRIPTS = {"healthy": [sys.executable, str(HEALTHY)], "restless": [sys.executable, str(HEALTHY), "20000", "restless"]}
LAUNCHES = 4
"""Pairs of launches, as many as in the proof of `hotlap speedup`."""
OVERHEAD_S = 12.0
"""Start and warm-up of a pair of launches."""


def against_itself(command: list[str], trials: int, seconds: float, sandbox: bool = True) -> list[Trial]:
    """Each trial compares two arms of the same command, both launched afresh for each quarter of ``seconds``."""
    out = []
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for k in range(trials):
            run = RunFolder.create(f"honesty-{k}", Path(folder) / "runs")
            options = Options(command=command, budget_s=seconds + LAUNCHES * OVERHEAD_S, sandbox=sandbox)
            with Session(options, read_machine(), run, Silent()) as session:
                question = Question("itself", seconds / LAUNCHES, whole=True)
                one, other = session.arm("one"), session.arm("other")
                launches = Launches(measure(session, one, other, question))
                session.discard(one)
                session.discard(other)
                launches.go_on(session, lambda label, _, s=session: s.arm(label), LAUNCHES, 1.0)
                trial = launches.trial()
            out.append(trial)
            print(f"  {k + 1:2d}  {_told(trial)}", flush=True)
    return out


def _told(trial: Trial) -> str:
    if trial.interval is None:
        return f"{trial.status}: {trial.reason}"
    got = trial.interval
    claim = "  CLAIMED" if claimed(trial) else ""
    return f"{got.ratio:.3f}x [{got.low:.3f}, {got.high:.3f}] at {got.level} over {got.launches} launches{claim}"


def claimed(trial: Trial) -> bool:
    """The interval excludes 1."""
    return trial.interval is not None and not trial.interval.low <= 1.0 <= trial.interval.high


def launches_of(trial: Trial) -> list[list[float]]:
    """Per pair of launches, the log ratios of its neighbouring windows in the order in which they were run."""
    return [
        pair_log_ratios([w for w in trial.windows if w.launch == launch], 0.0, 0.0)
        for launch in sorted({w.launch for w in trial.windows})
    ]


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
    parser.add_argument("--seconds", type=float, default=24.0, help="measuring time of each trial")
    parser.add_argument("--budget", default="150s", help="of hotlap speedup on the healthy script")
    parser.add_argument("--script", nargs="+", help="what to compare with itself (default: the two scripts)")
    parser.add_argument("--save", action="store_true", help="write bench/results/honesty.json")
    args = parser.parse_args()
    scripts = {"script": args.script} if args.script else SCRIPTS
    trials: dict[str, list[Trial]] = {}
    for name, command in scripts.items():
        print(f"{name} against itself", flush=True)
        trials[name] = against_itself(command, max(1, args.trials // len(scripts)), args.seconds)
    well = healthy(args.budget)
    intervals = {
        name: [[t.interval.low, t.interval.ratio, t.interval.high] for t in found if t.interval]
        for name, found in trials.items()
    }
    launches = {name: [row for t in found if t.interval for row in launches_of(t)] for name, found in trials.items()}
    everything = [trial for found in trials.values() for trial in found]
    measured = [trial for trial in everything if trial.interval is not None]
    false = sum(claimed(trial) for trial in measured)
    if args.save:
        save("honesty", {"healthy": well, "intervals": intervals, "launches": launches, "false_claims": false,
                         "level": LEVEL})  # fmt: skip
    print(f"healthy script: kept {well['kept'] or 'nothing'} · {well['verdict']}")
    print(f"scripts against themselves: {false} false claims in {len(measured)} of {len(everything)} trials ({LEVEL})")


if __name__ == "__main__":
    main()
