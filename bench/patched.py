"""Is a script that was patched as fast as the plan it was patched from? Both run in turn, and their ratio comes last.

    python bench/patched.py [--only SCRIPT] [--rounds 2] [--last 160] [--save]

Each script of bench/faults below is diagnosed, one lever's move is written into a plan, and `hotlap patch --write`
writes it into a copy. Then `hotlap run --plan` of the script as it is and the patched copy alone take turns. A ratio
above one says that the patch is the faster one. ``--save`` writes bench/results/patched.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fault_runs import environment, steps_per_s
from fault_table import Fault, faults
from results import save

from hotlap.lever.contract import Refusal
from hotlap.lever.registry import lever
from hotlap.machine.facts import read_machine
from hotlap.records.findings import Finding, Findings
from hotlap.records.run_folder import list_runs

ASKED = 0.05
"""Part of the plan's speed by which the patched script may fall behind."""
PAIRS = {
    "audio_flac": "cache-decode", "csv_rows": "background-fetch", "short_epochs": "loader-workers",
    "gan_checkpoint": "checkpoint-async", "tagger_debug": "debug-off", "many_tensors": "optimizer-fused",
    "linear_probe": "teacher-inference", "wide_mlp": "autocast", "residual_cnn": "channels-last",
    "many_threads": "threads", "lstm_by_hand": "compile-model", "verify_val_grad": "validation-no-grad",
}  # fmt: skip
"""One script for each lever that is written into the source, and that this kind of machine can use."""
RESULT = Path(__file__).parent / "results" / "patched.json"
HOTLAP = [sys.executable, "-m", "hotlap"]


def hotlap(cwd: Path, *words: str) -> None:
    """Run a command of Hotlap. RuntimeError with what it said where it fails."""
    done = subprocess.run([*HOTLAP, *words], cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"hotlap {words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")


def move(name: str, findings: Findings) -> dict[str, Any]:
    """The lever's first setting for these findings that is written whole: the layout of a frozen network is left to a
    person. RuntimeError where it refuses."""
    chosen = lever(name)
    finding = chosen.evidence(findings) or Finding(chosen.TREATS[0], 0.5, 0.0, False, [], "")
    offered = chosen.settings(finding, findings, read_machine())
    if isinstance(offered, Refusal):
        raise RuntimeError(f"{name} refuses: {offered.reason}")
    whole = [s for s in offered if all(edit.kind != "advice" for edit in chosen.edits(finding, s))]
    return {"lever": name, "setting": (whole or offered)[0], "preserves": chosen.PRESERVES}


def both(fault: Fault, name: str, cwd: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Steps per second of the plan and of the patched script, in the order ABBA."""
    script, patched, plan = cwd / fault.script.name, cwd / f"{fault.name}_patched.py", cwd / "plan.yaml"
    shutil.copy(fault.script, script)
    steps_per_s(script, cwd, 40)  # data are made, and imports are warm
    hotlap(cwd, "diagnose", "--no-confirm", "--", sys.executable, script.name)
    findings = list_runs(cwd / ".hotlap")[-1].read("findings.json", Findings)
    assert findings is not None
    moved = move(name, findings)
    plan.write_text(json.dumps({"schema": "hotlap.plan/1", "script": f"python {script.name}", "moves": [moved]}))
    hotlap(cwd, "patch", str(plan), "--write", "--force")
    changed = script.read_text() != fault.script.read_text()
    shutil.move(script, patched)
    shutil.copy(fault.script, script)
    run = [*HOTLAP, "run", "--plan", str(plan), "--"]
    ratios, plan_s, patched_s = [], [], []
    for number in range(args.rounds):
        turns = [(plan_s, script, run), (patched_s, patched, [])]
        for times, file, before in turns if number % 2 == 0 else turns[::-1]:
            times.append(steps_per_s(file, cwd, args.last, before))
        ratios.append(patched_s[-1] / plan_s[-1])
    return {
        "lever": name, "setting": moved["setting"], "changed": changed, "last": args.last, "plan_steps_per_s": plan_s,
        "patched_steps_per_s": patched_s, "ratios": ratios, "ratio": statistics.median(ratios),
    }  # fmt: skip


def main() -> None:
    """Run, print, and say which fall behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(PAIRS), help="only this script (repeatable)")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each (an even number: ABBA)")
    parser.add_argument("--last", type=int, default=160, help="steps of a run (a multiple of 20)")
    parser.add_argument("--save", action="store_true", help="write bench/results/patched.json; with --only, these rows")
    args = parser.parse_args()
    machine = read_machine()
    # Of each row: those that --only leaves as they were may come from another machine.
    here = {"date": time.strftime("%Y-%m-%d"), "cpu": machine.cpu, "cpu_flags": machine.cpu_flags}
    rows: dict[str, dict[str, Any]] = {}
    skipped: dict[str, str] = {}
    known = json.loads(RESULT.read_text())["figures"]["scripts"] if args.only and RESULT.exists() else {}
    for fault in faults(args.only or list(PAIRS)):
        if fault.missing:
            skipped[fault.name] = f"{', '.join(fault.missing)} not installed"
            continue
        with tempfile.TemporaryDirectory(prefix="patched-") as folder:
            row = rows[fault.name] = both(fault, PAIRS[fault.name], Path(folder), args) | here
        spread = f"[{min(row['ratios']):.2f}, {max(row['ratios']):.2f}]"
        text = "" if row["changed"] else "  NOTHING WAS WRITTEN"
        print(f"{fault.name:16s} {row['lever']:20s} patched / plan {row['ratio']:.2f} {spread}{text}", flush=True)
        if args.save:
            save("patched", {"asked": ASKED, "skipped": skipped, "scripts": known | rows})
    middle = statistics.median(row["ratio"] for row in rows.values())
    slower = [name for name, row in rows.items() if row["ratio"] < 1 - ASKED or not row["changed"]]
    surely = [name for name in slower if max(rows[name]["ratios"]) < 1 - ASKED]
    print(f"median of {len(rows)} scripts {middle:.3f}; behind the plan by more than {100 * ASKED:.0f} %: {slower}, "
          f"of these in every round: {surely}")  # fmt: skip


if __name__ == "__main__":
    main()
