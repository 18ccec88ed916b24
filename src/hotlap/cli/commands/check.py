"""Check in CI that the working tree is not slower than a git revision: both run side by side, on this machine.

A throughput from another day or machine is no baseline: machines of one kind differ by more than what a gate is to see.
So the revision is run too, in the sandbox, where the working tree is. Exit code: 0 not refuted (with --strict: proved);
1 slower than allowed, or it could not be measured; 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from hotlap.cli.arguments import add_output, check_json_folder, duration, positive, share
from hotlap.cli.prepare import new_run, status_of
from hotlap.cli.show import console, publish
from hotlap.inject.run_script import check_command
from hotlap.lap.check import check
from hotlap.lap.options import Options
from hotlap.lap.revision import find_revision
from hotlap.machine.facts import read_machine
from hotlap.records.check import Check
from hotlap.records.errors import EXIT_FAILED, HotlapError
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
    parser.add_argument("--against", metavar="REF", required=True, help="the git revision to compare with")
    parser.add_argument(
        "--max-slowdown", metavar="SHARE", type=share, default=0.05, help="slowdown that is allowed: 0.05 or 5%% (5%%)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="fail also where it is open whether it is slower than allowed"
    )
    parser.add_argument("--launches", metavar="N", type=positive, default=4, help="launches of each arm (4)")
    parser.add_argument(
        "--budget", metavar="TIME", type=duration, default=DEFAULT_BUDGET_S, help="wall time for everything (3m)"
    )
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write a JUnit file")
    parser.add_argument("--scratch", metavar="DIR", help="where the runs' writes go (default: memory)")
    add_output(parser)


def execute(args: argparse.Namespace) -> int:
    """Compare, tell, and fail if it is slower than allowed."""
    command = check_command(args.script)
    revision = find_revision(args.against)
    check_json_folder(args.json)
    check_json_folder(args.junit, "--junit")
    machine = read_machine(sandbox=sandbox.available())
    options = Options(command, budget_s=args.budget, scratch=args.scratch, runs=args.runs, seeds=args.launches)
    started = time.monotonic()
    folder, run = new_run(NAME, command, args.runs)
    folder.write("machine.json", machine)
    try:
        with status_of(run), Live(console()) as live:
            found = check(options, revision, args.max_slowdown, machine, folder, live)
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


def _tell(found: Check, folder: RunFolder, args: argparse.Namespace, wall_s: float) -> None:
    publish(load_report(folder), folder, args.json)
    if args.junit is not None:
        write_atomic(args.junit, check_words.junit(found, args.strict, wall_s))
    _tell_github(check_words.annotation(found, args.strict), check_words.markdown(found))


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
