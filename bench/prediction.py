"""How good are the predictions? What each lever was predicted to save beside what it saved when it was tried.

    python bench/prediction.py [--only NAME] [--limit-s SECONDS] [--budget 225s] [--save]

Runs `hotlap speedup` on the scripts of bench/faults and takes every lever that was measured, kept or put back. A saving
is a share of the step: a ratio of 1.25 saves 1 - 1 / 1.25 = 0.2 of it. The error is the difference of the two shares;
its median comes last. A prediction within the measured interval may be right; those are counted. ``--save`` puts the
scripts' rows into bench/results/prediction.json, where those of other scripts stay.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fault_runs import sped_up, steps_per_s
from fault_table import Fault, faults
from results import FOLDER, save

NAME = "prediction"


def saving(ratio: float) -> float:
    """Share of the step that goes away when throughput becomes ``ratio`` times as high."""
    return 1.0 - 1.0 / ratio


def rows_of(got: dict[str, Any]) -> list[dict[str, Any]]:
    """The levers of a `hotlap speedup` that have both a prediction and a measurement."""
    rows = []
    for lever in got["levers"]:
        measured = lever["measured"]
        if lever["predicted"] is None or measured is None:
            continue
        predicted, saved = saving(lever["predicted"]), saving(measured["ratio"])
        low, high = saving(measured["low"]), saving(measured["high"])
        rows.append(
            {
                "lever": lever["id"],
                "setting": lever["setting"],
                "kept": lever["kept"],
                "predicted_frac": predicted,
                "measured_frac": saved,
                "low_frac": low,
                "high_frac": high,
                "error_frac": abs(predicted - saved),
                "within": low <= predicted <= high,
            }
        )
    return rows


def examine(fault: Fault, budget: str | None) -> list[dict[str, Any]]:
    """One script in a folder of its own: its data made first, then sped up."""
    with tempfile.TemporaryDirectory(prefix="prediction-") as name:
        cwd = Path(name)
        steps_per_s(fault.script, cwd, 40)
        return rows_of(sped_up(fault, cwd, budget))


def told(name: str, row: dict[str, Any]) -> str:
    """One line on one lever."""
    numbers = f"predicted {100 * row['predicted_frac']:5.1f} %  measured {100 * row['measured_frac']:6.1f} %"
    interval = f"[{100 * row['low_frac']:.1f}, {100 * row['high_frac']:.1f}]"
    return f"{name:18s} {row['lever']:26s} {numbers} {interval:16s} {'kept' if row['kept'] else 'put back'}"


def score(scripts: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The figures over all rows, and the median error of each lever."""
    rows = [row for found in scripts.values() for row in found]
    by_lever: dict[str, list[float]] = {}
    for row in rows:
        by_lever.setdefault(row["lever"], []).append(row["error_frac"])

    def middle(errors: list[float]) -> float | None:
        return statistics.median(errors) if errors else None

    return {
        "scripts": len(scripts),
        "levers": len(rows),
        "error_frac": middle([row["error_frac"] for row in rows]),
        "error_kept_frac": middle([row["error_frac"] for row in rows if row["kept"]]),
        "error_put_back_frac": middle([row["error_frac"] for row in rows if not row["kept"]]),
        "signed_frac": middle([row["predicted_frac"] - row["measured_frac"] for row in rows]),
        "within_interval": sum(row["within"] for row in rows),
        "error_by_lever": {name: middle(errors) for name, errors in sorted(by_lever.items())},
    }


def kept() -> dict[str, Any]:
    """The scripts saved before."""
    path = FOLDER / f"{NAME}.json"
    return dict(json.loads(path.read_text())["figures"]["scripts"]) if path.exists() else {}


def main() -> None:
    """Run, print, save, score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="only this script (repeatable)")
    parser.add_argument("--limit-s", type=float, help="begin no further script after so many seconds")
    parser.add_argument("--budget", help="passed on to hotlap speedup")
    parser.add_argument("--threads", help="OMP_NUM_THREADS of all runs, for a shared machine (default: all cores)")
    parser.add_argument("--save", action="store_true", help=f"write bench/results/{NAME}.json")
    args = parser.parse_args()
    if args.threads:
        os.environ["HOTLAP_BENCH_THREADS"] = args.threads
    began, fresh, skipped = time.monotonic(), {}, []
    for fault in faults(args.only):
        if args.limit_s is not None and time.monotonic() - began > args.limit_s:
            skipped.append(f"{fault.name}: no time left")
            continue
        if fault.missing:
            skipped.append(f"{fault.name}: {', '.join(fault.missing)} not installed")
            continue
        fresh[fault.name] = examine(fault, args.budget)
        for row in fresh[fault.name]:
            print(told(fault.name, row), flush=True)
        if args.save:
            scripts = {**kept(), **fresh}
            save(NAME, {"score": score(scripts), "threads": args.threads, "skipped": skipped, "scripts": scripts})
    for line in skipped:
        print(f"skipped {line}")
    figures = score(fresh)
    if figures["error_frac"] is None:
        print("no lever was measured that had a prediction")
        return
    for name, error in figures["error_by_lever"].items():
        print(f"{name:26s} median error {100 * error:.1f} % of the step")
    print(f"{figures['within_interval']} of {figures['levers']} predictions lie within the measured interval")
    print(f"median of predicted less measured: {100 * figures['signed_frac']:+.1f} % of the step")
    print(f"median absolute error over {figures['levers']} levers: {100 * figures['error_frac']:.1f} % of the step")


if __name__ == "__main__":
    sys.exit(main())
