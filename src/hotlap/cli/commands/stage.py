"""Copy a data set to a local disk: space looked at first, resumable, verified by hash, the source untouched."""

from __future__ import annotations

import argparse

from hotlap.cli.console import console
from hotlap.cli.option_types import named, named_path
from hotlap.cli.progress import bar, meter
from hotlap.pack.staging import stage
from hotlap.report import units

NAME = "stage"
HELP = "copy a data set to a local disk, verified"
ORDER = 21
TAKES_COMMAND = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap stage``."""
    parser.add_argument("source", metavar="SRC", type=named, help="a folder (a pack or any other), a file, or a URL")
    parser.add_argument("target", metavar="DST", help="the folder to copy into", type=named_path)


def execute(args: argparse.Namespace) -> int:
    """Copy what is not there yet."""
    with bar() as shown:
        report = meter(shown, "staging", lambda speed: f"{units.bytes_(speed)}/s")
        done = stage(args.source, args.target, report)
    what = f"{done.copied_files} of {done.files} files copied ({units.bytes_(done.copied_bytes)}), the rest was there"
    console(stderr=False).print(f"{args.target}: {what}", markup=False, soft_wrap=True)
    return 0
