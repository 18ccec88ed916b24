"""List the runs that are kept, oldest first."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table

from hotlap.cli.console import console
from hotlap.cli.saved import kept_runs
from hotlap.records.errors import HotlapError
from hotlap.records.guard import GuardRecord
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import ROOT
from hotlap.report import units
from hotlap.report.run_words import measured_speedup, status_line, verdict_of
from hotlap.report.saved import load_report
from hotlap.ui.line import silent_s

NAME = "runs"
HELP = "list the runs that are kept"
ORDER = 7
TAKES_COMMAND = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap runs``."""
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept (default: .hotlap)")


def execute(args: argparse.Namespace) -> int:
    """Print a line per run; a run that cannot be read says why and hides no other."""
    out = console(stderr=False)
    folders = kept_runs(args.runs)
    if not folders:
        out.print(f"No runs under {args.runs or ROOT}. Start with: hotlap speedup -- python train.py")
        return 0
    table = Table(box=None, pad_edge=False)
    for title in ("run", "kind", "status", "before", "speedup", "command"):
        table.add_column(title, overflow="fold", no_wrap=title == "run")  # the name is what other commands take
    for folder in folders:
        try:
            run = folder.read("run.json", RunRecord)
            report = load_report(folder)
            guarded = folder.read("guard.json", GuardRecord)
        except HotlapError as err:
            table.add_row(folder.path.name, "", "unreadable", "", "", err.what)
            continue
        assert run is not None
        before = units.per_s(report.before) if report.before is not None else ""
        measured = measured_speedup(report.speedup)
        speedup = units.ratio(measured.ratio) if measured is not None else ""
        ended = run.status != "running"  # until then, what the guard left is from before an alarm
        if not before and ended and guarded is not None and guarded.train_s > 0:
            before = units.per_s((guarded.samples or guarded.steps) / guarded.train_s)
        drifts = len(guarded.alarms) if guarded is not None else 0
        judged = report.seed_proof or report.check or report.proof
        word = verdict_of(vars(judged)) if judged is not None else ""
        status = status_line(run.status, run.exit_code, silent_s(folder.path, run.status), drifts, word)
        table.add_row(folder.path.name, run.kind, status, before, speedup, " ".join(run.command))
    out.print(table)
    return 0
