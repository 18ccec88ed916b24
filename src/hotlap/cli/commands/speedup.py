"""Find what makes the training slow, try the levers that fit, keep those that pay, and prove it.

The command after `--` is run unmodified, in a sandbox: its files are not touched.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from hotlap.cli.arguments import add_measuring, add_search, measuring_options
from hotlap.cli.prepare import new_run, status_of
from hotlap.cli.show import console, publish
from hotlap.inject.run_script import check_command
from hotlap.lap.speedup import Outcome, speedup
from hotlap.machine.facts import read_machine
from hotlap.records.run_folder import RunFolder, write_atomic
from hotlap.report.progress import Live
from hotlap.report.view import Report
from hotlap.trial import sandbox

NAME = "speedup"
HELP = "make this training faster, by measurement"
ORDER = 1
TAKES_COMMAND = True
DEFAULT_BUDGET_S = 225.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap speedup``."""
    add_measuring(parser, "default 3m45s")
    add_search(parser)


def execute(args: argparse.Namespace) -> int:
    """Run the lap; print the report of whatever it reached, also after Ctrl-C."""
    command = check_command(args.script)
    options = measuring_options(args, command, DEFAULT_BUDGET_S)
    machine = read_machine(sandbox=sandbox.available())
    started = time.monotonic()
    folder, run = new_run(NAME, command, args.runs)
    folder.write("machine.json", machine)
    outcome = Outcome()
    try:
        with status_of(run), Live(console()) as live:
            speedup(options, machine, folder, live, outcome)
    finally:
        run.wall_s = time.monotonic() - started
        run.refused = [list(pair) for pair in outcome.refused]
        run.notes = list(outcome.notes)
        if outcome.plan is not None:
            outcome.plan_path = str(_keep_plan(folder, args.plan))
            run.plan_path = outcome.plan_path
        folder.write("run.json", run)
        if outcome.findings is not None:
            report = Report(
                machine=machine,
                findings=outcome.findings,
                levers=outcome.levers,
                proof=outcome.proof,
                plan=outcome.plan,
                plan_path=outcome.plan_path,
                command=command,
                run_path=str(folder.path),
                wall_s=run.wall_s,
                notes=outcome.notes,
                refused=outcome.refused,
                status=run.status,
                kind=NAME,
                trials=outcome.trials,
                plan_text=outcome.plan_text,
            )
            publish(report, folder, args.json)
    return 0


def _keep_plan(folder: RunFolder, wanted: Path) -> Path:
    """Put the plan where the user looks for it; never over a file that is not a plan of ours."""
    text = (folder.path / "plan.yaml").read_text(encoding="utf-8")
    if wanted.exists() and "hotlap.plan/" not in wanted.read_text(encoding="utf-8", errors="replace")[:2000]:
        return folder.path / "plan.yaml"
    write_atomic(wanted, text, aside=folder.path)
    return wanted
