"""Check in CI that the working tree is not slower than a git revision: both run side by side, on this machine.

A throughput from another day or machine is no baseline: machines of one kind differ by more than what a gate is to see.
So the revision is run too, in the sandbox, where the working tree is. --baseline takes the revision, and the plan for
both, from the proof.json of `hotlap prove`: is what was proved still as fast? Exit code: 0 not refuted (with --strict:
proved); 1 slower than allowed, or it could not be measured; 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from hotlap.cli.arguments import add_output, check_json_folder
from hotlap.cli.console import console
from hotlap.cli.option_types import duration, positive, share
from hotlap.cli.prepare import new_run, status_of
from hotlap.cli.show import publish
from hotlap.inject.run_script import check_command
from hotlap.lap.check import check
from hotlap.lap.options import Options
from hotlap.lap.prove_seeds import seeded
from hotlap.lap.proved import read_proved
from hotlap.lap.revision import Against, find_revision
from hotlap.machine.facts import read_machine
from hotlap.plan.file import validate
from hotlap.records.check import Check
from hotlap.records.errors import EXIT_FAILED, HotlapError
from hotlap.records.machine import Machine
from hotlap.records.plan import Plan
from hotlap.records.run_folder import RunFolder, write_atomic
from hotlap.report import check_words
from hotlap.report.progress import Live
from hotlap.report.saved import load_report
from hotlap.trial import sandbox

NAME = "check"
HELP = "check in CI that a training has not become slower"
ORDER = 4
TAKES_COMMAND = True
DEFAULT_BUDGET_S = 180.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap check``."""
    baseline = parser.add_mutually_exclusive_group(required=True)
    baseline.add_argument("--against", metavar="REF", help="the git revision to compare with")
    baseline.add_argument(
        "--baseline", metavar="FILE", type=Path, help="a proof.json: compare with its commit, both with its plan"
    )
    parser.add_argument(
        "--max-slowdown", metavar="SHARE", type=share, default=0.05, help="slowdown that is allowed: 0.05 or 5%% (5%%)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="fail also where it is open whether it is slower than allowed"
    )
    parser.add_argument("--launches", metavar="N", type=positive, default=4, help="launches of each arm (4)")
    parser.add_argument(
        "--budget", metavar="TIME", type=duration, help="wall time for everything (3m, and more where steps are slow)"
    )
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write a JUnit file")
    parser.add_argument("--scratch", metavar="DIR", help="where the runs' writes go (default: memory)")
    add_output(parser)


def execute(args: argparse.Namespace) -> int:
    """Compare, tell, and fail if it is slower than allowed."""
    command = list(args.script)
    check_command(seeded(command, 1))
    against = read_proved(args.baseline) if args.baseline is not None else Against(find_revision(args.against))
    check_json_folder(args.json)
    check_json_folder(args.junit, "--junit")
    machine = read_machine(sandbox=sandbox.available())
    if against.plan is not None:
        _validate(against.plan, machine, args.baseline)
    options = Options(
        command, budget_s=args.budget or DEFAULT_BUDGET_S, scratch=args.scratch, runs=args.runs, seeds=args.launches,
        budget_asked=args.budget is not None,
    )  # fmt: skip
    started = time.monotonic()
    folder, run = new_run(NAME, command, args.runs)
    folder.write("machine.json", machine)
    try:
        with status_of(run), Live(console()) as live:
            if machine.sandbox == "none":  # --no-sandbox is no way out: the revision would be checked out for real
                raise HotlapError("The revision runs in a sandbox, and none can be made here.", sandbox.ALLOW)
            found = check(options, against, args.max_slowdown, machine, folder, live)
    except HotlapError as err:
        if args.junit is not None:
            write_atomic(args.junit, check_words.junit_error(command, err.what, time.monotonic() - started))
        _tell_github(check_words.annotation_error(err.what), check_words.markdown_error(err.what))
        raise
    finally:
        run.wall_s = time.monotonic() - started
        folder.write("run.json", run)
    _tell(found, folder, args, run.wall_s)
    return EXIT_FAILED if found.verdict == "refuted" or (args.strict and found.verdict != "proved") else 0


def _validate(plan: Plan, machine: Machine, proof: Path) -> None:
    """The plan in a proof, whose place in that file an error names."""
    try:
        validate(plan, machine, "$.plan")
    except HotlapError as err:
        raise HotlapError(f"{proof}: {err.what}", err.hint, err.exit_code) from err


def _tell(found: Check, folder: RunFolder, args: argparse.Namespace, wall_s: float) -> None:
    _tell_github(check_words.annotation(found, args.strict), check_words.markdown(found))
    try:
        if args.junit is not None:
            write_atomic(args.junit, check_words.junit(found, args.strict, wall_s))
    finally:  # whichever file cannot be written, the other is
        publish(load_report(folder), folder, args.json)


def _tell_github(annotation: str, markdown: str) -> None:
    """In a job of GitHub Actions: a line at the commit, and the step's summary."""
    if os.environ.get("GITHUB_ACTIONS") == "true" and annotation:
        print(annotation)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with open(summary, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(markdown + "\n")
        except OSError as err:  # the verdict stands all the same
            print(f"hotlap: cannot write the summary {summary} (GITHUB_STEP_SUMMARY): {err.strerror}.", file=sys.stderr)
