"""Look at this machine: what Hotlap and training can do here, and what would be worth fixing."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.text import Text

from hotlap.cli.console import console
from hotlap.machine.doctor import Check, examine
from hotlap.machine.facts import read_machine
from hotlap.report import units
from hotlap.trial import sandbox

NAME = "doctor"
HELP = "what this machine can do, and what to fix"
ORDER = 6
TAKES_COMMAND = False
MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "red")}


def shown(check: Check) -> str:
    """A check's value in its unit."""
    if not isinstance(check.value, float | int):
        return check.value or ""
    value = float(check.value)
    if check.unit == "bytes":
        return units.bytes_(value)
    if check.unit == "bytes_per_s":
        return f"{units.bytes_(value)}/s"
    return f"{units.plain(value)} {check.unit}".rstrip()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap doctor``."""
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="where your data lie (default: here)")


def execute(args: argparse.Namespace) -> int:
    """Print one line per check; 1 when something makes Hotlap impossible here."""
    out = console(stderr=False)
    failed = False
    for check in examine(read_machine(import_torch=True), args.folder, sandbox.available()):
        mark, style = MARKS[check.state]
        failed = failed or check.state == "fail"
        out.print(Text(mark, style=style) + Text(f"  {check.name:<22} {shown(check)}"), soft_wrap=True)
        if check.advice:
            out.print(Text(f"      {'':<22} {check.advice}", style="dim"), soft_wrap=True)
    return 1 if failed else 0
