"""Find what makes the training slow, try the levers that fit, keep those that pay, and prove it.

The command after `--` is run unmodified, in a sandbox: its files are not touched.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from hotlap.cli.arguments import add_measuring, add_search, check_json_folder, measuring_options
from hotlap.cli.console import console
from hotlap.cli.prepare import new_run, status_of
from hotlap.cli.show import publish
from hotlap.inject.run_script import check_command
from hotlap.lap.speedup import Outcome, speedup
from hotlap.machine.facts import read_machine
from hotlap.records.errors import HotlapError
from hotlap.records.run_folder import RunFolder, list_runs, write_atomic
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
    add_measuring(
        parser,
        "wall time for everything (default 3m45s, which grows where steps are slow or gains are small)",
        "steps of the diagnosing run",
    )
    add_search(parser)


def execute(args: argparse.Namespace) -> int:
    """Run the lap; print the report of whatever it reached, also after Ctrl-C."""
    command = check_command(args.script)
    options = measuring_options(args, command, DEFAULT_BUDGET_S)
    check_json_folder(args.plan, "--plan")
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
        if outcome.plan is not None:
            outcome.plan_path = str(_keep_plan(folder, args.plan, outcome.notes))
            run.plan_path = outcome.plan_path
        run.notes = list(outcome.notes)
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


def _keep_plan(folder: RunFolder, wanted: Path, notes: list[str]) -> Path:
    """Put the plan where the user looks for it; never over a file that is not a plan of ours.

    Where that fails, the one in the run folder is the plan: the lap has been run, and its report must come.
    """
    kept = folder.path / "plan.yaml"
    try:
        if wanted.exists() and "hotlap.plan/" not in wanted.read_text(encoding="utf-8", errors="replace")[:2000]:
            notes.append(f"{wanted} is there already and is no plan of Hotlap's: the plan is {kept}.")
            return kept
        if wanted.exists():
            _keep_edited(folder, wanted, notes)
        write_atomic(wanted, kept.read_text(encoding="utf-8"), aside=folder.path)
    except (OSError, HotlapError) as err:
        why = err.what if isinstance(err, HotlapError) else f"Cannot read {err.filename or wanted}: {err.strerror}"
        notes.append(f"{why.rstrip('.')}: the plan is {kept}.")
        return kept
    return wanted


def _keep_edited(folder: RunFolder, wanted: Path, notes: list[str]) -> None:
    """A plan that no run wrote in this way was edited, by hand perhaps: it is kept beside the one that replaces it."""
    before = wanted.read_text(encoding="utf-8")
    written = (run.path / "plan.yaml" for run in list_runs(folder.path.parent))
    if not any(path.is_file() and path.read_text(encoding="utf-8") == before for path in written):
        write_atomic(folder.path / "replaced.yaml", before)
        notes.append(f"{wanted} was edited since it was written: what it held is in {folder.path / 'replaced.yaml'}.")
