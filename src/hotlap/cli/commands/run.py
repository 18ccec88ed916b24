"""Run a command with a plan: the moves that `hotlap speedup` proved, applied without touching the script."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from hotlap.cli.prepare import new_run
from hotlap.inject import door
from hotlap.inject.run_script import check_command, run_script
from hotlap.machine.facts import read_machine
from hotlap.plan.file import load_valid_plan
from hotlap.plan.knobs import by_hand, rewritten
from hotlap.records.call import Call
from hotlap.records.plan import Plan
from hotlap.records.rows import Mark
from hotlap.records.timeline import training_timeline

NAME = "run"
HELP = "run a command with a plan"
ORDER = 3
TAKES_COMMAND = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap run``."""
    parser.add_argument("--plan", metavar="FILE", type=Path, required=True, help="the plan (fast.yaml)")
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept (default: .hotlap)")


def execute(args: argparse.Namespace) -> int:
    """Check the plan against this machine, run the command with it, and return the command's exit code."""
    command = check_command(args.script)
    machine = read_machine()
    plan = load_valid_plan(args.plan, machine)
    to_run = rewritten(command, plan.moves)
    for line in by_hand(plan.moves, command):
        print(f"hotlap: {line} (your files are not changed)", file=sys.stderr)
    folder, run = new_run(NAME, command, args.runs, plan.moves)
    run.plan_path = str(args.plan)
    folder.write("machine.json", machine)
    timeline_dir = folder.timeline_dir("run")
    shm = Path("/dev/shm")
    scratch = Path(tempfile.mkdtemp(prefix="hotlap-", dir=shm if os.access(shm, os.W_OK) else None))
    started = time.monotonic()
    try:
        call = Call(
            timeline_dir=str(timeline_dir),
            mode="run",
            moves=[move for move in plan.moves if not move.is_knob],
            stack_hz=0.0,
            cores=machine.cores,
            scratch=str(scratch),
        )
        code = run_script(to_run, door.environment(call))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    run.status, run.exit_code, run.wall_s = "finished", code, time.monotonic() - started
    folder.write("run.json", run)
    for line in _what_happened(timeline_dir, plan, command):
        print(f"hotlap: {line}", file=sys.stderr)
    return code


def _what_happened(timeline_dir: Path, plan: Plan, command: list[str]) -> list[str]:
    """One line per move that did not do what the plan says; one in all when everything was applied."""
    errors = sorted(timeline_dir.glob("*.error"))
    if errors:
        return [f"the plan was not applied: {errors[0].read_text().strip()}"]
    timeline = training_timeline(timeline_dir)
    if timeline is None:
        return ["the plan was not applied: no optimiser step was seen."]
    last: dict[str, Mark] = {m.id: m for m in timeline.mark if m.kind == "lever"}
    lines = by_hand(plan.moves, command)
    for move in plan.moves:
        if move.is_knob:
            continue
        mark = last.get(move.lever)
        if mark is None or mark.state == "no-effect":
            why = (mark.why if mark is not None else "") or "it found nothing to change in this run"
            lines.append(f"{move.lever}: no effect ({why})")
        elif mark.state != "applied":
            lines.append(f"{move.lever}: {mark.state}, {mark.why}; the run went on without it")
    return lines or [f"all {len(plan.moves)} moves of the plan were applied over {timeline.n_steps} steps."]
