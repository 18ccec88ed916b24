"""Does Hotlap name the right cause, and the right line? How much of what a fix by hand gains does it get by itself?

    python bench/faults.py --diagnose-only [--only NAME]     causes and lines: a watched run of each script
    python bench/faults.py [--budget 225s] [--save]          also `hotlap speedup` beside the fix by hand

    python bench/faults.py --rows FILE                       go on where a run that was cut off stopped
    python bench/faults.py --rows FILE --diagnose-only       diagnose what FILE holds anew; what was gained stays
    python bench/faults.py --rows FILE --measured --save     sum up what FILE holds; nothing is run

The whole suite takes hours. bench/results/faults.jsonl holds the rows measured so far, each with its day and machine;
a script whose row is deleted there is measured again.

bench/faults holds slow scripts whose cause is known, each with a version fixed by hand, and some that are healthy;
bench/faults/faults.toml says what is right. A script whose packages are missing is skipped, and named. Figures come
last; ``--save`` writes bench/results/faults.json with the raw data of each script, ``--traceml`` sets TraceML beside.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fault_runs import by_hand, diagnosed, first_right, left_alone, speedup, steps_per_s, together
from fault_table import Fault, faults
from fault_traceml import TraceML
from quiet import Watch, wait_until_quiet
from results import facts, save

T = TypeVar("T")

ASKED = {"cause": 0.95, "line": 0.90, "alone": 1.0, "recovered": 0.90}


class Restless(Exception):
    """The hypervisor never left the machine its cores for as long as a measurement takes."""


def in_quiet(what: str, args: argparse.Namespace, work: Callable[[], T]) -> T:
    """``work()``, again while more than ``--stolen`` of the cores' time was taken meanwhile."""
    for _ in range(args.tries):
        wait_until_quiet(args.stolen)
        watch = Watch()
        result = work()
        taken = watch.stolen()
        if taken <= args.stolen:
            return result
        print(f"{what}: measured again, {100 * taken:.0f} % of the cores' time was taken", flush=True)
    raise Restless


def examine(fault: Fault, args: argparse.Namespace) -> dict[str, Any]:
    """One script in a folder of its own: data made first, then diagnosed, and where wanted sped up."""
    with tempfile.TemporaryDirectory(prefix="fault-") as name:
        cwd = Path(name)
        steps_per_s(fault.script, cwd, 40)
        row = diagnosis(fault, args, cwd) | {"levers": fault.levers}
        if args.diagnose_only or not (fault.healthy or fault.levers):
            return row  # nothing to recover without touching the code
        row["speedup"] = in_quiet(f"{fault.name}, speedup", args, lambda: speedup(fault, cwd, args.budget))
        if fault.healthy:
            row["alone"] = row["alone"] and row["speedup"]["ratio"] == 1.0
        else:
            rounds = [
                in_quiet(f"{fault.name}, by hand", args, lambda: by_hand(fault, cwd, args.last))
                for _ in range(args.rounds)
            ]
            row["by_hand"] = together(rounds)
            row["share"] = row["speedup"]["ratio"] / row["by_hand"]["ratio"]
        return row


def diagnosis(fault: Fault, args: argparse.Namespace, cwd: Path) -> dict[str, Any]:
    """What is found in one script, and whether it is right."""
    findings = in_quiet(f"{fault.name}, diagnose", args, lambda: diagnosed(fault, cwd))
    if fault.healthy:
        return {"findings": findings, "alone": left_alone(findings)}
    cause, line, herring = first_right(fault, findings)
    return {"findings": findings, "cause": cause, "line": line, "herring": herring}


def diagnosed_anew(fault: Fault, row: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """A row that was measured before with what is found now, and the day; what was gained stays."""
    with tempfile.TemporaryDirectory(prefix="fault-") as name:
        steps_per_s(fault.script, Path(name), 40)
        new = row | diagnosis(fault, args, Path(name)) | {"diagnosed": facts()["date"]}
    if fault.healthy and "speedup" in row:
        new["alone"] = new["alone"] and row["speedup"]["ratio"] == 1.0
    return new


def judged(fault: Fault, traceml: TraceML) -> Any:
    """TraceML's verdict on one script in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="fault-") as name:
        steps_per_s(fault.script, Path(name), 40)
        return traceml.judge(fault, Path(name))


def told(fault: Fault, row: dict[str, Any]) -> str:
    """One line on one script."""
    first = row["findings"][0] if row["findings"] else None
    where = first["where"][0] if first and first["where"] else None
    place = f"{where[0]}:{where[1]}  {where[2]}" if where else "no line"
    found = f"{first['cause']} {100 * first['share']:.0f} %  {place}" if first else "nothing found"
    if fault.healthy:
        marks = "left alone" if row["alone"] else "NOT LEFT ALONE"
    else:
        marks = " ".join(key if row[key] else f"WRONG {key.upper()}" for key in ("cause", "line"))
        marks += " RED HERRING" if row["herring"] else ""
    text = f"{fault.name:18s} {marks:24s} {found}"
    if "share" in row:
        text += f"\n{'':18s} {row['speedup']['ratio']:.2f}x of {row['by_hand']['ratio']:.2f}x by hand"
        text += f" ({' '.join(row['speedup']['kept']) or 'no lever'})"
    return text


def kept_rows(file: Path | None) -> dict[str, dict[str, Any]]:
    """The results by script that an earlier run left in ``file``, one JSON object a line."""
    if file is None or not file.exists():
        return {}
    return {name: row for line in file.read_text().splitlines() for name, row in json.loads(line).items()}


def share_of(rows: list[dict[str, Any]], key: str) -> float | None:
    """Part of the rows for which ``key`` holds; None without rows."""
    return sum(bool(row[key]) for row in rows) / len(rows) if rows else None


def score(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The figures that are asked for."""
    slow = [row for row in rows.values() if "cause" in row]
    treated = [row for row in slow if "share" in row and row["levers"]]
    figures: dict[str, Any] = {
        "scripts": len(rows),
        "cause": share_of(slow, "cause"),
        "line": share_of(slow, "line"),
        "herrings_taken": sum(row["herring"] for row in slow),
        "alone": share_of([row for row in rows.values() if "alone" in row], "alone"),
        "recovered": math.exp(sum(math.log(row["share"]) for row in treated) / len(treated)) if treated else None,
        "treated": len(treated),
    }
    asked = [row["traceml"] for row in rows.values() if row.get("traceml")]
    judged = [verdict for verdict in asked if verdict["right"] is not None]
    figures["traceml_phase"] = share_of(judged, "right")
    figures["traceml_judged"], figures["traceml_silent"] = len(judged), len(asked) - len(judged)
    return figures


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="only this script (repeatable)")
    parser.add_argument("--diagnose-only", action="store_true", help="causes and lines, no speedup")
    parser.add_argument("--budget", help="passed on to hotlap speedup")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of slow against fixed")
    parser.add_argument("--last", type=int, default=300, help="steps of a bare run (a multiple of 20)")
    parser.add_argument("--threads", help="OMP_NUM_THREADS of all runs, for a shared machine (default: all cores)")
    parser.add_argument("--traceml", action="store_true", help="set TraceML's diagnosis beside (installs traceml-ai)")
    parser.add_argument(
        "--stolen",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="most of the cores' time that others may take meanwhile; above it a part is measured again",
    )
    parser.add_argument("--tries", type=int, default=4, help="how often, before the script is left out")
    parser.add_argument("--rows", type=Path, help="add results to this file; scripts in it are not run again")
    parser.add_argument("--measured", action="store_true", help="run nothing: only scripts that --rows has")
    parser.add_argument("--save", action="store_true", help="write bench/results/faults.json")
    return parser.parse_args()


def main() -> None:
    """Run, score, print."""
    args = options()
    if args.threads:
        os.environ["HOTLAP_BENCH_THREADS"] = args.threads
    rows: dict[str, dict[str, Any]] = {}
    done = kept_rows(args.rows)
    skipped: dict[str, str] = {}
    not_run: list[str] = []
    with tempfile.TemporaryDirectory() as home:
        traceml = TraceML(Path(home)) if args.traceml else None
        for fault in faults(args.only):
            if args.measured and fault.name not in done:
                not_run.append(fault.name)
                continue
            if fault.missing:
                skipped[fault.name] = f"{', '.join(fault.missing)} not installed"
                print(f"{fault.name:18s} skipped: {skipped[fault.name]}")
                continue
            known = done.get(fault.name)
            try:
                row = dict(known or examine(fault, args) | facts())
                if known and args.diagnose_only and known.get("diagnosed") != facts()["date"]:
                    row = diagnosed_anew(fault, row, args)
                rows[fault.name] = row
            except Restless:
                not_run.append(fault.name)
                continue
            if traceml is not None and "traceml" not in row:
                row["traceml"] = judged(fault, traceml)
            if args.rows and row != done.get(fault.name):
                with args.rows.open("a") as file:
                    file.write(json.dumps({fault.name: row}) + "\n")
            print(told(fault, rows[fault.name]), flush=True)
    figures = score(rows)
    if args.save:
        save("faults", {"asked": ASKED, "score": figures, "threads": args.threads, "skipped": skipped,
                        "not_run": not_run, "scripts": rows})  # fmt: skip
    for key, words in (("cause", "right first cause"), ("line", "right line"), ("alone", "healthy ones left alone"),
                       ("recovered", "of the speedup by hand, without touching the code")):  # fmt: skip
        if figures[key] is not None:
            print(f"{100 * figures[key]:.0f} % {words} (asked {100 * ASKED[key]:.0f} %)")
    counts = f"scripts: {len(rows)}, skipped: {len(skipped)}, not run: {len(not_run)}"
    print(f"red herrings taken: {figures['herrings_taken']}; {counts}")
    if figures["traceml_phase"] is not None:
        share, silent = 100 * figures["traceml_phase"], figures["traceml_silent"]
        print(f"TraceML: {share:.0f} % right phase of {figures['traceml_judged']}; no verdict on {silent}; no lines")


if __name__ == "__main__":
    sys.exit(main())
