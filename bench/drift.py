"""Is a training that slows down in the middle of its run found in time, with the right cause? A steady one left alone?

Runs bench/drift/slow.py under `hotlap run`, once per kind, and reads what the guard wrote. Found: warned of within 60 s
or 300 steps of the change, whichever comes later. False: every warning before the change, and later ones with another
cause. Exit code: 1 when a kind was not found in time with the right cause, or a warning was false. `--kinds` chooses;
`--save` writes bench/results/drift.json; with `--kinds`, other kinds' rows in it stay as they are.
`swap` wants a memory cgroup and swap space (root, mostly); where they cannot be had it is not measured, and named.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memory_group import entering, memory_group, swap_file
from results import FOLDER, save

from hotlap.records.guard import GuardRecord
from hotlap.records.run_folder import RunFolder, list_runs

SCRIPT = Path(__file__).parent / "drift" / "slow.py"
FOUND_S = 60.0
FOUND_STEPS = 300

KINDS: dict[str, tuple[str, ...]] = {
    "storage": ("storage-read", "page-cache-exhausted", "small-files", "whole-file-read", "reopened-per-sample"),
    "augment": ("augment",),
    "leak": ("growing-step", "memory-leak"),
    "history": ("metrics-history", "growing-step"),
    "throttled": ("throttling",),
    "worker": ("worker-lost",),
    "neighbour": ("neighbour-load",),
    "padding": ("larger-batches", "padding"),
    "collections": ("gc-collect", "gc"),
    "logging": ("metrics-history", "logging-blocking", "growing-step"),
    "swap": ("swapping",),
    "recompilation": ("recompilation",),
    "validation": ("growing-validation",),
    "steady": (),
    "steady-validation": (),
}
"""The causes that are right; none: any warning is a false alarm."""
SWAP_MEMORY_BYTES, SWAP_BYTES = 1 << 30, 2 << 30
"""`swap`: memory that the run may use, and swap space beside it."""


@dataclass
class Result:
    """One run."""

    kind: str
    steps: int
    changed_at: int | None
    found: bool
    right: bool
    cause: str
    where: str
    after_s: float | None
    """Seconds from the change to the warning."""
    after_steps: int | None
    false_alarms: int


def run(kind: str, seconds: float, change_s: float, runs: Path) -> tuple[GuardRecord | None, int | None]:
    """One guarded run: its record, and the step at which the script says that the fault began."""
    command = [sys.executable, str(SCRIPT), kind, str(seconds), str(change_s)]
    with contextlib.ExitStack() as machine:
        enter: tuple[str, ...] = ()
        if kind == "swap":
            machine.enter_context(swap_file(runs.with_suffix(".swap"), SWAP_BYTES))
            enter = entering(machine.enter_context(memory_group(SWAP_MEMORY_BYTES)))
        done = subprocess.run(
            [*enter, sys.executable, "-m", "hotlap", "run", "--runs", str(runs), "--", *command],
            capture_output=True, text=True, timeout=seconds + 120,
        )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{kind}: the run ended with {done.returncode}\n{done.stderr}")
    folder: RunFolder = list_runs(runs)[-1]
    said = re.search(r"change at step (\d+)", done.stdout)
    return folder.read("guard.json", GuardRecord), int(said[1]) if said else None


def judge(kind: str, record: GuardRecord | None, changed_at: int | None) -> Result:
    """Set the first warning after the change against what was planted. False are those before, and later ones with a
    wrong cause. SystemExit where nothing was tried: no fault began, or the guard did not watch to the end."""
    if record is None or record.notes:
        why = "; ".join(record.notes) if record is not None else "it wrote no guard.json"
        raise SystemExit(f"{kind}: the guard did not watch the run: {why}")
    alarms, steps = record.alarms, record.steps
    if not KINDS[kind]:
        causes = ", ".join(alarm.cause for alarm in alarms)
        return Result(kind, steps, None, not alarms, not alarms, causes, "", None, None, len(alarms))
    if changed_at is None:
        raise SystemExit(f"{kind}: the fault never began. Is --change before the end of --seconds?")
    real = [a for a in alarms if a.found_step >= changed_at]
    false = len(alarms) - len(real) + sum(a.cause not in KINDS[kind] for a in real[1:])
    if not real:
        return Result(kind, steps, changed_at, False, False, "", "", None, None, false)
    first = real[0]
    per_step = max(first.before_s, 1e-9)
    after_s = max(0.0, first.found_s - max(0, changed_at - first.at_step) * per_step)
    after_steps = first.found_step - changed_at
    found = after_s <= FOUND_S or after_steps <= FOUND_STEPS
    where = f"{Path(first.where[0].file).name}:{first.where[0].line}" if first.where else ""
    right = first.cause in KINDS[kind]
    return Result(kind, steps, changed_at, found, right, first.cause, where, after_s, after_steps, false)


def line(result: Result) -> str:
    """One row of the table."""
    if not KINDS[result.kind]:
        told = f"{result.false_alarms} false alarms: {result.cause}"
        return f"{result.kind:18} {'left alone' if result.found else told}"
    if not result.cause:
        return f"{result.kind:18} not found"
    verdict = ("found" if result.found else "late") + (", right cause" if result.right else ", WRONG cause")
    more = f", {result.false_alarms} false alarms" if result.false_alarms else ""
    return (
        f"{result.kind:18} {verdict}: {result.cause} {result.where} after {result.after_s:.0f} s, "
        f"{result.after_steps} steps{more}"
    )


def kept(measured: Sequence[str]) -> list[dict[str, Any]]:
    """Rows saved before, of kinds that are not measured now."""
    path = FOLDER / "drift.json"
    if not path.exists():
        return []
    return [row for row in json.loads(path.read_text())["figures"]["kinds"] if row["kind"] not in measured]


def main() -> int:
    """Run, judge, print; 1 when it falls short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", help=f"of {','.join(KINDS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=120.0, help="of training per kind (120)")
    parser.add_argument("--change", type=float, default=50.0, help="second at which the fault begins (50)")
    parser.add_argument("--save", action="store_true", help="write bench/results/drift.json")
    options = parser.parse_args()
    kinds = options.kinds.split(",") if options.kinds else list(KINDS)
    results, not_measured = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            try:
                record, changed_at = run(kind, options.seconds, options.change, Path(folder) / kind)
            except OSError as err:
                not_measured[kind] = str(err)
                print(f"{kind:18} not measured: {err}", flush=True)
                continue
            results.append(judge(kind, record, changed_at))
            print(line(results[-1]), flush=True)
    faulty = [r for r in results if KINDS[r.kind]]
    good = sum(r.found and r.right for r in faulty)
    false = sum(r.false_alarms for r in results)
    if options.save:
        rows = {row["kind"]: row for row in kept(kinds)} | {r.kind: asdict(r) for r in results}
        save("drift", {"seconds": options.seconds, "change_s": options.change, "not_measured": not_measured,
                       "kinds": [rows[kind] for kind in KINDS if kind in rows]})  # fmt: skip
    print(
        f"found in time with the right cause: {good} of {len(faulty)} kinds; "
        f"false alarms in {len(results)} runs: {false}"
    )
    return int(good < len(faulty) or false > 0)


if __name__ == "__main__":
    sys.exit(main())
