"""Show where a step's time goes and which line costs it.

The script runs to its end as if Hotlap were not there; its causes are then confirmed in short sandboxed trials. With
--steps or --budget it runs in the sandbox alone, and only that long.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from hotlap.cli.arguments import add_measuring, measuring_options
from hotlap.cli.console import console
from hotlap.cli.prepare import new_run
from hotlap.cli.show import publish
from hotlap.diagnose.diagnose import diagnose
from hotlap.diagnose.surroundings import Around
from hotlap.guard.look_around import looking_around
from hotlap.inject import door
from hotlap.inject.host import let_go, whereabouts
from hotlap.inject.run_script import check_command, run_script
from hotlap.lap.baseline import script_name
from hotlap.lap.options import Options
from hotlap.lap.speedup import Outcome, diagnose_in_trial
from hotlap.machine.facts import read_machine
from hotlap.records.call import Call
from hotlap.records.errors import EXIT_FAILED, HotlapError, NotAttached
from hotlap.records.findings import Findings
from hotlap.records.machine import Machine
from hotlap.records.run_folder import RunFolder
from hotlap.records.timeline import attach_errors, training_timeline
from hotlap.report.progress import Live
from hotlap.report.view import Report
from hotlap.trial import sandbox
from hotlap.trial.collect import annotate
from hotlap.trial.shut_out import ShutOut

NAME = "diagnose"
HELP = "show where a step's time goes, and why"
ORDER = 2
TAKES_COMMAND = True
CONFIRM_BUDGET_S = 75.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap diagnose``."""
    add_measuring(
        parser,
        "stop after so long, in the sandbox alone (default: the script runs to its end, then 75s of confirming trials)",
        "run only so many steps, in the sandbox alone",
    )


def execute(args: argparse.Namespace) -> int:
    """Run the script, print the diagnosis to stderr, and return the script's exit code."""
    command = check_command(args.script)
    options = measuring_options(args, command, CONFIRM_BUDGET_S)
    short = args.steps is not None or args.budget is not None
    folder, run = new_run(NAME, command, args.runs)
    started = time.monotonic()
    outcome = Outcome()
    machine: Machine | None = None
    code, around = 0, list[Around]()
    try:
        machine = read_machine(sandbox=sandbox.available())
        folder.write("machine.json", machine)  # first: while the script runs, others ask whose roof is its own
        if not short:
            code, around = _watch(command, folder)
            outcome.findings = _findings(folder, machine, command, code, around)
            folder.write("findings.json", outcome.findings)
        _confirm(options, machine, folder, outcome, required=short)
        run.status = "finished"
    except KeyboardInterrupt:
        run.status = "interrupted"
        raise
    except HotlapError as err:
        run.status = "failed"
        if code:  # the script's own failure is the one to report
            _say(f"{err}")
            return code
        raise
    except BaseException:
        run.status = "failed"
        raise
    finally:
        run.exit_code, run.wall_s, run.notes = code, time.monotonic() - started, list(outcome.notes)
        folder.write("run.json", run)
        if outcome.findings is not None:
            report = Report(
                machine=machine,
                findings=outcome.findings,
                command=command,
                run_path=str(folder.path),
                wall_s=run.wall_s,
                notes=outcome.notes,
                status=run.status,
                kind=NAME,
                trials=outcome.trials,
            )
            publish(report, folder, args.json)
    return code


def _say(text: str) -> None:
    print(f"hotlap: {text}", file=sys.stderr)


def _watch(command: list[str], folder: RunFolder) -> tuple[int, list[Around]]:
    timeline_dir = folder.timeline_dir("run")
    call = Call(
        timeline_dir=str(timeline_dir),
        mode="watch",
        host_pid=os.getpid(),
        host_where=whereabouts(),
        cores=os.cpu_count() or 1,
    )
    with looking_around(ShutOut(door.BOOTSTRAP, timeline_dir)) as (started, around):
        code = run_script(command, door.environment(call), started)
    let_go(call.timeline_dir)
    return code, around


def _findings(folder: RunFolder, machine: Machine, command: list[str], code: int, around: Sequence[Around]) -> Findings:
    timeline_dir = folder.path / "timelines" / "run"
    timeline = training_timeline(timeline_dir)
    if timeline is None:
        errors = attach_errors(timeline_dir)[:1]
        if code:  # its own crash comes first: what Hotlap did not come into may have been a helper
            shut_out = "".join(f" Hotlap could not attach to it: {error}." for error in errors)
            raise HotlapError(
                f"Nothing to diagnose: the script exited with {code}, and no training step was seen before.",
                f"Its own message is above. Does the command work without Hotlap?{shut_out}",
                EXIT_FAILED,
            )
        if errors:
            raise NotAttached(errors[0])
        raise HotlapError(
            "Nothing to diagnose: the script ended and no optimiser step was seen.",
            "Hotlap watches `optimizer.step()` in any Python process below the command (not with `python -I` or `-E`).",
            EXIT_FAILED,
        )
    return diagnose(annotate(timeline), machine, script_name(command), around=around)


def _confirm(options: Options, machine: Machine, folder: RunFolder, outcome: Outcome, *, required: bool) -> None:
    """Confirm by trials. Without a sandbox the user's own run still has its diagnosis, observed only."""
    if not options.confirm and not required:
        return
    if options.sandbox and sandbox.available() == "none" and not required:
        outcome.notes.append("Causes are observed, not confirmed: this system allows no sandbox for trials.")
        return
    with Live(console()) as live:
        try:
            diagnose_in_trial(options, machine, folder, live, outcome)
        except HotlapError as err:
            if required:
                raise
            outcome.notes.append(f"Causes are observed, not confirmed: {err.what}")
