"""How good are the predictions? What each lever was predicted to save beside what it saved when it was tried.

    python bench/prediction.py [ROWS] [--save]

Takes every lever that `bench/faults.py` measured, kept or put back: from bench/results/faults.json, or from the file of
its ``--rows``. A saving is a share of the step: a ratio of 1.25 saves 1 - 1 / 1.25 = 0.2 of it. The error is the
difference of the two shares; its median comes last. A prediction within the measured interval may be right; those are
counted. ``--save`` writes bench/results/prediction.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from results import FOLDER, save

__all__ = ["rows_of", "score"]


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


def read(file: Path) -> dict[str, list[dict[str, Any]]]:
    """Per script its levers, from the results of bench/faults.py or the file of its ``--rows``."""
    if file.suffix == ".json":
        scripts = json.loads(file.read_text())["figures"]["scripts"]
    else:
        scripts = {name: row for line in file.read_text().splitlines() for name, row in json.loads(line).items()}
    return {name: row["speedup"]["predictions"] for name, row in scripts.items() if "speedup" in row}


def main() -> int:
    """Read, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="?", type=Path, default=FOLDER / "faults.json", help="default: %(default)s")
    parser.add_argument("--save", action="store_true", help="write bench/results/prediction.json")
    args = parser.parse_args()
    scripts = read(args.rows)
    for name, rows in scripts.items():
        for row in rows:
            print(told(name, row))
    figures = score(scripts)
    if figures["error_frac"] is None:
        print("no lever was measured that had a prediction")
        return 1
    if args.save:
        save("prediction", {"score": figures, "scripts": scripts})
    for name, error in figures["error_by_lever"].items():
        print(f"{name:26s} median error {100 * error:.1f} % of the step")
    print(f"{figures['within_interval']} of {figures['levers']} predictions lie within the measured interval")
    print(f"median of predicted less measured: {100 * figures['signed_frac']:+.1f} % of the step")
    print(f"median absolute error over {figures['levers']} levers: {100 * figures['error_frac']:.1f} % of the step")
    return 0


if __name__ == "__main__":
    sys.exit(main())
