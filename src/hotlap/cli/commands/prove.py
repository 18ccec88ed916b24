"""Prove a plan on whole runs: the unmodified script against the plan, side by side, a seed for each pair.

`{seed}` in the command is replaced by the seed. Runs go to the script's own end, in a sandbox, unless --steps,
--epochs or --until stops them. Exit code: 0 proved; 1 not proved, refuted, or it could not be measured; 2 the command
line or the plan is wrong; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path

from hotlap.cli.arguments import add_output, add_sandbox, check_json_folder
from hotlap.cli.console import console
from hotlap.cli.option_types import positive, share
from hotlap.cli.prepare import new_run, status_of
from hotlap.cli.show import publish
from hotlap.inject.run_script import check_command
from hotlap.lap.options import Options
from hotlap.lap.prove_seeds import SEED, Request, prove_seeds, seeded
from hotlap.machine.facts import read_machine
from hotlap.plan.file import load_valid_plan
from hotlap.records.errors import EXIT_FAILED, EXIT_USAGE, HotlapError
from hotlap.records.seed_proof import Stop
from hotlap.report.progress import Live
from hotlap.report.saved import load_report
from hotlap.report.seed_words import seed_line
from hotlap.trial import sandbox

NAME = "prove"
HELP = "prove a plan on whole runs, over seeds"
ORDER = 3
TAKES_COMMAND = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap prove``."""
    parser.add_argument("--plan", metavar="FILE", type=Path, required=True, help="the plan (fast.yaml)")
    parser.add_argument(
        "--seeds",
        metavar="N",
        type=positive,
        default=3,
        help="pairs of runs, a seed for each (3; fewer prove no speed)",
    )
    parser.add_argument("--first-seed", metavar="N", type=_seed, default=1, help="the first seed (1)")
    stop = parser.add_mutually_exclusive_group()
    stop.add_argument("--steps", metavar="N", type=positive, help="stop every run after so many steps")
    stop.add_argument("--epochs", metavar="N", type=positive, help="stop every run after so many epochs")
    stop.add_argument(
        "--until",
        metavar="loss=X",
        type=_target,
        help="stop a run when the mean loss of its last 10 steps is at most X, and compare the time to it",
    )
    parser.add_argument(
        "--metric",
        metavar="REGEX",
        type=_pattern,
        help="judge quality by the last match in what the script prints, e.g. 'EER: ([-+\\d.eE]+)'; higher is better",
    )
    parser.add_argument("--lower", action="store_true", help="a lower metric is better")
    parser.add_argument(
        "--margin",
        metavar="SHARE",
        type=share,
        help="how much worse still counts as the same, e.g. 0.02 (default: what the unmodified script's own seeds "
        "differ by, 0.02 at least)",
    )
    alone = "one arm after the other (by itself where memory does not hold both, or ranks train on several GPUs)"
    parser.add_argument("--one-at-a-time", action="store_true", help=alone)
    add_output(parser)
    add_sandbox(parser)


def execute(args: argparse.Namespace) -> int:
    """Run the seeds; print the report of whatever was reached, also after Ctrl-C."""
    command = _checked(args)
    machine = read_machine(sandbox=sandbox.available())
    plan = load_valid_plan(args.plan, machine)
    if not plan.moves:
        what = f"The plan {args.plan} has no moves: there is nothing to prove."
        raise HotlapError(what, "`hotlap speedup` writes a plan with moves where something pays.", EXIT_USAGE)
    request = Request(
        Options(
            command, budget_s=0.0, sandbox=not args.no_sandbox, scratch=args.scratch, runs=args.runs, seeds=args.seeds,
            margin=args.margin,
        ),
        plan,
        Stop(args.steps, args.epochs, args.until),
        first_seed=args.first_seed,
        metric=args.metric,
        lower_is_better=args.lower,
        one_at_a_time=args.one_at_a_time,
    )  # fmt: skip
    started = time.monotonic()
    folder, run = new_run(NAME, command, args.runs)
    request = replace(request, origin=run.origin)
    folder.write("machine.json", machine)
    run.plan_path = str(args.plan)
    proved = False
    if not request.by_command:
        text = f"hotlap: no {SEED} in the command: 7919 times the seed is added to every seed that the script sets."
        console().print(text, soft_wrap=True, markup=False)
    try:
        with status_of(run), Live(console()) as live:
            proved = prove_seeds(request, machine, folder, live, seed_line).verdict == "proved"
    finally:
        run.wall_s = time.monotonic() - started
        folder.write("run.json", run)
        report = load_report(folder)
        if report.seed_proof is not None or run.status == "interrupted":
            publish(report, folder, args.json)
    return 0 if proved else EXIT_FAILED


def _checked(args: argparse.Namespace) -> list[str]:
    """The command, once what argparse cannot see has been looked at."""
    check_command(seeded(args.script, args.first_seed))
    check_json_folder(args.json)
    if args.metric is not None and args.until is not None:
        raise HotlapError(
            "--until stops each run when its loss is there, and --metric would judge runs of different lengths.",
            "Leave one of them out.",
            EXIT_USAGE,
        )
    if args.lower and args.metric is None:
        raise HotlapError("--lower says which way --metric goes, and there is none.", "Add --metric.", EXIT_USAGE)
    return list(args.script)


def _seed(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed (0, 1, 2, ...)")
    return int(text)


def _target(text: str) -> float:
    match = re.fullmatch(r"loss=([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)", text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not loss=NUMBER, e.g. loss=0.3")
    return float(match[1])


def _pattern(text: str) -> re.Pattern[str]:
    try:
        found = re.compile(text, re.MULTILINE)
    except re.error as err:
        raise argparse.ArgumentTypeError(f"{shlex.quote(text)} is no regular expression: {err}") from err
    if found.groups > 1:
        raise argparse.ArgumentTypeError(
            f"{shlex.quote(text)} has {found.groups} groups: put one around the number, (?:...) elsewhere"
        )
    return found
