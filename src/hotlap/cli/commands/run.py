"""Run a command, with or without a plan, and keep watch over it.

With --plan, the moves that `hotlap speedup` proved are applied without touching the script. Either way Hotlap follows
the run from outside, warns when steps get slower, and names the cause.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from pathlib import Path

from hotlap.cli.applied import applied_lines, unwatched_lines
from hotlap.cli.guarding import add_guarding, guard_for, say
from hotlap.cli.prepare import new_run, status_of
from hotlap.guard.guard import Guard
from hotlap.inject import door
from hotlap.inject.run_script import check_command, run_script
from hotlap.machine.facts import read_machine
from hotlap.machine.scratch import launched_here, make_scratch, remove_scratch
from hotlap.plan.file import load_valid_plan
from hotlap.plan.knobs import by_hand, rewritten
from hotlap.records.call import Call
from hotlap.records.errors import HotlapError
from hotlap.records.figures import PREFIX
from hotlap.records.guard import GuardRecord
from hotlap.records.plan import Plan
from hotlap.records.rows import Mark
from hotlap.records.run_folder import RunFolder
from hotlap.records.timeline import Timeline, training_timeline
from hotlap.report.guard_words import summary

NAME = "run"
HELP = "run a command, with a plan, and keep watch"
ORDER = 3
TAKES_COMMAND = True

GUARD_STACK_HZ = 10.0
"""Stack samples per second of a guarded run, so that a drift has a line. A diagnosis takes five times as many."""
GUARD_HITS_S = 15.0
"""A drift is told within a minute, and its line has to be on disk by then."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap run``."""
    parser.add_argument(
        "--plan", metavar="FILE", type=Path, help="the plan (fast.yaml); without one nothing is changed"
    )
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept (default: .hotlap)")
    add_guarding(parser)


def execute(args: argparse.Namespace) -> int:
    """Check the plan against this machine, run the command with it, and return the command's exit code."""
    command = check_command(args.script)
    machine = read_machine(sandbox="")
    plan = load_valid_plan(args.plan, machine) if args.plan is not None else Plan([])
    to_run = rewritten(command, plan.moves)
    for line in by_hand(plan.moves, command):
        say(f"{line} (your files are not changed)")
    folder, run = new_run(NAME, command, args.runs, plan.moves)
    run.plan_path = str(args.plan) if args.plan is not None else None
    run.total_steps = args.total_steps
    folder.write("run.json", run)
    code: int | None = None
    try:
        with ExitStack() as ends:  # each is done, whatever the others raise
            ends.callback(folder.write, "run.json", run)
            with status_of(run):
                folder.write("machine.json", machine)
                timeline_dir, scratch = folder.timeline_dir("run"), make_scratch()
                ends.callback(remove_scratch, scratch)
                guard = guard_for(args, folder, machine, command)
                if guard is not None:
                    ends.callback(guard.stop)
                call = Call(
                    timeline_dir=str(timeline_dir),
                    mode="run",
                    moves=[move for move in plan.moves if not move.is_knob],
                    has_plan=args.plan is not None,
                    stack_hz=GUARD_STACK_HZ if guard is not None else 0.0,
                    hits_most_s=GUARD_HITS_S if guard is not None else 0.0,
                    cores=machine.cores,
                    export=guard is not None and not args.no_export,
                    scratch=str(scratch),
                    scratches=launched_here(),
                )
                started = time.monotonic()
                code = run_script(to_run, door.environment(call), guard.start if guard is not None else None)
                run.exit_code, run.wall_s = code, time.monotonic() - started
        timeline = training_timeline(timeline_dir)
        if args.plan is not None:
            told = applied_lines(plan, command, timeline, timeline_dir)
        else:
            told = unwatched_lines(timeline, timeline_dir)
        for line in [*told, *_guarded(guard, folder, timeline, always=not told), *_exported(timeline)]:
            say(line)
    except (HotlapError, OSError, KeyboardInterrupt) as err:
        if code is None:
            raise
        say(f"after the script's end: {str(err) or 'interrupted'}")  # the exit code that counts is the script's
    assert code is not None
    return code


def _guarded(guard: Guard | None, folder: RunFolder, timeline: Timeline | None, always: bool) -> list[str]:
    """What the guard saw: one line where there were drifts, or nothing else is said."""
    if guard is None:
        return []
    record = folder.read("guard.json", GuardRecord)
    if record is None or not record.steps:
        nothing = always and timeline is None
        return ["no training step was seen: there was nothing to watch"] if nothing else []
    return [summary(record)] if record.alarms or always else []


def _exported(timeline: Timeline | None) -> list[str]:
    """One line per tracker that figures were given to, or that refused them."""
    last: dict[str, Mark] = {m.id: m for m in timeline.mark if m.kind == "export"} if timeline is not None else {}
    lines = []
    for mark in last.values():
        if mark.state == "applied":
            lines.append(f"{PREFIX} series were added to the script's own run in {mark.id} (--no-export: none)")
        else:
            lines.append(f"{PREFIX} series: {mark.id} was left alone after {mark.count} times, {mark.why}")
    return lines
