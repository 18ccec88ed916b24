"""Show how a run goes, in a terminal of its own, while it goes on.

The script's own terminal stays as it is. Ctrl-C ends the display, not the run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.live import Live

from hotlap.cli.console import console
from hotlap.cli.guarding import shown
from hotlap.cli.saved import find_run
from hotlap.guard.earlier import look_back
from hotlap.guard.follow import Follower
from hotlap.guard.status import Earlier, Status, read_status
from hotlap.inject.run_script import name_of
from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.guard import GuardRecord
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.report.guard_status import panel, status_line
from hotlap.report.run_words import ended_words

NAME = "watch"
HELP = "show how a run goes, from another terminal"
ORDER = 3
TAKES_COMMAND = False
EVERY_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap watch``."""
    parser.add_argument("run", metavar="RUN", nargs="?", help="a run's folder or name (default: the newest to watch)")
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept (default: .hotlap)")
    parser.add_argument("--once", action="store_true", help="print one line and end")


def execute(args: argparse.Namespace) -> int:
    """Follow the run's timeline and redraw until the run has ended."""
    folder = find_run(args.run, args.runs, _watchable)
    follower = _follower(folder)
    run = _record(folder)
    earlier = look_back(run.command, folder.path.parent, folder, total=run.total_steps)
    script = name_of(run.command)
    out = console(stderr=False)
    if args.once or not out.is_terminal:
        while follower.poll():
            pass
        line = status_line(shown(_status(folder, follower, earlier), script))
        ended = "" if run.status == "running" else f" · {ended_words(run.status, run.exit_code)}"
        out.print(line + ended, soft_wrap=True, markup=False)
        return 0
    try:
        with Live(console=out, auto_refresh=False) as live:
            while True:
                news = follower.poll()
                run = _record(folder)
                ended = "" if run.status == "running" else ended_words(run.status, run.exit_code)
                now = shown(_status(folder, follower, earlier), script, ended)
                live.update(panel(now, str(Path.cwd())), refresh=True)
                if ended and not news:
                    return 0
                time.sleep(EVERY_S)
    except KeyboardInterrupt:
        return 0


def _watchable(folder: RunFolder) -> bool:
    return (folder.path / "timelines" / "run").is_dir()


def _follower(folder: RunFolder) -> Follower:
    timelines = folder.path / "timelines" / "run"
    if not _watchable(folder):
        raise HotlapError(
            f"{folder.path.name} has no timeline of a whole run.",
            "`hotlap watch` follows `hotlap run` and `hotlap diagnose`; a lap shows its own progress.",
            EXIT_USAGE,
        )
    return Follower(timelines)


def _record(folder: RunFolder) -> RunRecord:
    run = folder.read("run.json", RunRecord)
    if run is None:
        raise HotlapError(f"{folder.path} has no run.json any more.", "Was the folder removed?")
    return run


def _status(folder: RunFolder, follower: Follower, earlier: Earlier) -> Status:
    record = folder.read("guard.json", GuardRecord)
    current, drifts = (record.current, len(record.alarms)) if record is not None else (None, 0)
    return read_status(follower.training, follower.samples, earlier, current, drifts)
