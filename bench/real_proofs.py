"""Real proofs whose truth is known: a script of equal matrix products against itself, and with 3 % less of them.

Each is the proof of `hotlap speedup` as it runs by default: begun as late as the search may end, with the roof's time
gone, with as many launches as are planned, and with what the default budget may lend where they leave it open.

    python bench/real_proofs.py --proofs 10 --save                              ten of either kind: an hour and more
    python bench/real_proofs.py --rows bench/results/real_proofs.jsonl --save   some more, with those of FILE

Rows stand in FILE as soon as they are measured, each with its day and machine: what is cut off has them.

Wanted: false "faster" in 1 % at most, a true 3 % seen in 90 % at least. Exit code: 1 when a figure falls short of that.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
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

__all__ = ["FALSE_AT_MOST", "SEEN_AT_LEAST", "compare_once", "counted", "measured"]

BUSY = Path(__file__).resolve().parent / "busy.py"
Row = dict[str, Any]
"""One proof, as a line of the file of rows."""
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


def measured(n: int, rows: Path | None) -> list[Row]:
    """``n`` proofs of either kind, in turn, added to the file ``rows``; gives all that it then holds."""
    found = [json.loads(line) for line in rows.read_text().splitlines()] if rows and rows.exists() else []
    here = read_machine()
    with tempfile.TemporaryDirectory() as folder:
        for k in range(n):
            for case, products in CASES.items():
                with chdir(folder):
                    trial = compare_once(products, Path(folder))
                got = trial.interval
                row = {"case": case, "date": time.strftime("%Y-%m-%d"),
                       "machine": f"{here.cpu}, {here.cores} cores, torch {here.torch}",
                       "interval": got and [got.low, got.ratio, got.high], "launches": got.launches if got else 0,
                       "why": trial.reason}  # fmt: skip
                found.append(row)
                if rows is not None:
                    with rows.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                print(f"  {case}, {k + 1} of {n}: {_told(row)}", flush=True)
    return found


def _told(row: Row) -> str:
    if row["interval"] is None:
        return f"not measured: {row['why']}"
    low, ratio, high = row["interval"]
    return f"{ratio:.3f}x [{low:.3f}, {high:.3f}] over {row['launches']} launches"


def counted(rows: Sequence[Row]) -> dict[str, Any]:
    """How many were claimed, and every interval (low, ratio, high)."""
    found = [row for row in rows if row["interval"] is not None]
    return {
        "n": len(rows),
        "claimed": sum(row["interval"][0] > 1.0 for row in found),
        "failed": len(rows) - len(found),
        "launches": [row["launches"] for row in found],
        "intervals": [row["interval"] for row in found],
    }


def main() -> int:
    """Measure, count, print the figures last; 1 when they fall short."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proofs", type=int, default=10, help="of either kind; one takes two to eight minutes")
    parser.add_argument("--rows", type=Path, help="add results to this file, and count all that it holds")
    parser.add_argument("--save", action="store_true", help="write bench/results/real_proofs.json")
    args = parser.parse_args()
    rows = measured(args.proofs, args.rows)
    if not rows:
        parser.error("no proof is asked for, and there is none in --rows")
    figures = {case: counted([row for row in rows if row["case"] == case]) for case in CASES}
    if args.save:
        save("real_proofs", figures)
    for name, row in figures.items():
        print(f"{name}: {row['claimed']} of {row['n']} claimed, {row['failed']} not measured")
    false, seen = (figures[name]["claimed"] / figures[name]["n"] for name in (EQUAL, LESS))
    return int(false > FALSE_AT_MOST or seen < SEEN_AT_LEAST)


if __name__ == "__main__":
    sys.exit(main())
