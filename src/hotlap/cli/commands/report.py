"""Show the report of a run again: in the terminal, and as report.html in its folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from hotlap.cli.arguments import check_json_folder
from hotlap.cli.saved import find_run
from hotlap.cli.show import publish
from hotlap.report.saved import load_report

NAME = "report"
HELP = "show a run's report again"
ORDER = 4
TAKES_COMMAND = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap report``."""
    parser.add_argument("run", metavar="RUN", nargs="?", help="a run's folder or name (default: the newest)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result as JSON as well")
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept (default: .hotlap)")


def execute(args: argparse.Namespace) -> int:
    """Load the run's documents and print them."""
    check_json_folder(args.json)
    folder = find_run(args.run, args.runs)
    publish(load_report(folder), folder, args.json, stderr=False)
    return 0
