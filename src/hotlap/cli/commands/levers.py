"""List the levers, or explain one: what speaks for it, what it gains, how it works, what it risks."""

from __future__ import annotations

import argparse
import inspect

from rich.table import Table

from hotlap.cli.console import console
from hotlap.lever.contract import Lever
from hotlap.lever.registry import lever, levers

NAME = "levers"
HELP = "list the levers, or explain one"
ORDER = 5
TAKES_COMMAND = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap levers``."""
    parser.add_argument("id", metavar="ID", nargs="?", help="a lever to explain")


def execute(args: argparse.Namespace) -> int:
    """Print the list or one lever's page."""
    out = console(stderr=False)
    if args.id is not None:
        found = lever(args.id)
        out.print(f"{found.ID}  (preserves {found.PRESERVES}; treats {', '.join(found.TREATS)})\n", markup=False)
        for paragraph in inspect.cleandoc(found.__doc__ or "").split("\n\n"):
            out.print(" ".join(paragraph.split()) + "\n", markup=False)  # wrapped anew, at the terminal's width
        out.print("Setting, in a plan:", markup=False)
        for line in setting_lines(found) or ["{}: it has no keys."]:
            out.print(f"  {line}", markup=False)
        return 0
    table = Table(box=None, pad_edge=False)
    for title in ("lever", "preserves", "what it does"):
        table.add_column(title, overflow="fold")
    for found in levers().values():
        table.add_row(found.ID, found.PRESERVES, (found.__doc__ or "").strip().splitlines()[0])
    out.print(table)
    return 0


def setting_lines(lever: Lever) -> list[str]:
    """What may stand in a lever's setting, a line per key: ``dtype: bf16 or fp16``."""
    return [f"{key}: {rule.words()}" for key, rule in getattr(lever, "RULES", {}).items()]
