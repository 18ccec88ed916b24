"""Real proofs whose truth is known: a script of equal matrix products against itself, and with 3 % less of them.

Each is the proof of `hotlap speedup` as it runs by default: begun as late as the search may end, with the roof's time
gone, with as many launches as are planned, and with what the default budget may lend where they leave it open.

Wanted: false "faster" in 1 % at most, a true 3 % seen in 90 % at least. Exit code: 1 when a figure falls short of that.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

from power_trials import ROOF_S
from results import save

from hotlap.lap.incumbent import SEARCH_UNTIL
from hotlap.lap.launches import Launches
from hotlap.lap.measure import Question, measure
from hotlap.lap.options import Options, Silent
from hotlap.lap.prove import FIRST_S, LAUNCHES_UNTIL
from hotlap.lap.session import Session
from hotlap.machine.facts import read_machine
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import Trial
from hotlap.trial.arm import Arm

__all__ = ["FALSE_AT_MOST", "SEEN_AT_LEAST", "compare_once", "real"]

BUSY = Path(__file__).resolve().parent / "busy.py"
PRODUCTS = 100
EQUAL, LESS = "equal", "3 % less to do"
CASES = {EQUAL: PRODUCTS, LESS: 97}
"""Products of the candidate's steps."""
FALSE_AT_MOST, SEEN_AT_LEAST = 0.01, 0.9
"""As bench/power.py wants of simulated ones."""


def compare_once(products: int, folder: Path) -> Trial:
    """The proof of a candidate whose steps are so many products, against a baseline of :data:`PRODUCTS`."""
    todo = {"baseline": PRODUCTS, "candidate": products}
    run = RunFolder.create("power", folder / "runs")
    options = Options([sys.executable, str(BUSY), str(PRODUCTS)])
    with Session(options, read_machine(), run, Silent()) as session:

        def arm(label: str, _: int) -> Arm:
            made = session.arm(label)
            made.spec = replace(made.spec, command=[sys.executable, str(BUSY), str(todo[label])])
            return made

        session.started = time.monotonic() - SEARCH_UNTIL * options.budget_s - ROOF_S
        one, other = arm("baseline", 0), arm("candidate", 0)
        launches = Launches(measure(session, one, other, Question("power", FIRST_S, whole=True)))
        session.discard(one)
        session.discard(other)
        launches.go_on(session, arm, options.seeds, LAUNCHES_UNTIL)
        launches.decide(session, arm, LAUNCHES_UNTIL)
    return launches.trial()


def real(n: int) -> dict[str, Any]:
    """``n`` comparisons of either kind, in turn: how many were claimed, and every interval (low, ratio, high)."""
    trials: dict[str, list[Trial]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for k in range(n):
            for name, products in CASES.items():
                trials[name].append(compare_once(products, Path(folder)))
                print(f"  {name}, {k + 1} of {n}: {_told(trials[name][-1])}", flush=True)
    return {name: _counted(row) for name, row in trials.items()}


def _told(trial: Trial) -> str:
    got = trial.interval
    if got is None:
        return f"{trial.status}: {trial.reason}"
    return f"{got.ratio:.3f}x [{got.low:.3f}, {got.high:.3f}] over {got.launches} launches"


def _counted(trials: list[Trial]) -> dict[str, Any]:
    found = [t.interval for t in trials if t.interval is not None]
    return {
        "n": len(trials),
        "claimed": sum(i.low > 1.0 for i in found),
        "failed": len(trials) - len(found),
        "launches": [i.launches for i in found],
        "intervals": [[i.low, i.ratio, i.high] for i in found],
    }


def main() -> int:
    """Measure, count, print the figures last; 1 when they fall short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proofs", type=int, default=10, help="of either kind; one takes two to eight minutes")
    parser.add_argument("--save", action="store_true", help="write bench/results/real_proofs.json")
    args = parser.parse_args()
    figures = real(args.proofs)
    if args.save:
        save("real_proofs", figures)
    for name, row in figures.items():
        print(f"{name}: {row['claimed']} of {row['n']} claimed, {row['failed']} not measured")
    false, seen = (figures[name]["claimed"] / figures[name]["n"] for name in (EQUAL, LESS))
    return int(false > FALSE_AT_MOST or seen < SEEN_AT_LEAST)


if __name__ == "__main__":
    sys.exit(main())
