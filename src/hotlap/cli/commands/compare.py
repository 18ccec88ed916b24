"""Compare two runs, or two plans: what takes longer in B than in A, by phase and by cause, and what was changed.

A and B are runs (their folders, or their names in the runs folder) or plan files. Warnings come first: on another
machine, with another batch size or after a few steps only, two runs do not compare.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hotlap.cli.arguments import check_json_folder
from hotlap.cli.comparing import compare
from hotlap.cli.console import console
from hotlap.records.run_folder import write_atomic
from hotlap.report.comparison import comparison, to_json

NAME = "compare"
HELP = "what got faster or slower between two runs, and what was changed"
ORDER = 5
TAKES_COMMAND = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap compare``."""
    parser.add_argument("a", metavar="A", help="a run's folder or name, or a plan file")
    parser.add_argument("b", metavar="B", help="another one; it is told against A")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result as JSON as well")
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept (default: .hotlap)")


def execute(args: argparse.Namespace) -> int:
    """Print the comparison; 0 whatever it found."""
    check_json_folder(args.json)
    found = compare(args.a, args.b, args.runs)
    console(stderr=False).print(comparison(found))
    if args.json is not None:
        write_atomic(args.json, json.dumps(to_json(found), indent=2, allow_nan=False) + "\n")
    return 0
