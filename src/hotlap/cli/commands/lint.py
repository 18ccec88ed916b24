"""Name the causes that source alone shows, without running or importing it.

Exit code: 0 nothing found, 1 something found (after --fix: left), 2 the command line, or a file, cannot be read.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import defaultdict
from pathlib import Path

from hotlap.lint.formats import FORMATS
from hotlap.lint.lint import Result, lint_paths
from hotlap.lint.problem import Problem
from hotlap.patch.patch import Wanted, patch_file
from hotlap.patch.write import write_all
from hotlap.records.causes import CAUSES
from hotlap.records.errors import EXIT_FAILED, EXIT_USAGE, HotlapError

NAME = "lint"
HELP = "name the causes that source alone shows"
ORDER = 6
TAKES_COMMAND = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``hotlap lint``."""
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="files and folders")
    parser.add_argument("--format", choices=sorted(FORMATS), default="text", help="how to print (text)")
    parser.add_argument("--fix", action="store_true", help="write the fixes that need no decision of yours")
    parser.add_argument("--ignore", metavar="CAUSE", action="append", default=[], help="leave a cause out (repeatable)")


def execute(args: argparse.Namespace) -> int:
    """Print the problems; the exit code says whether there are any."""
    for cause in args.ignore:
        if cause not in CAUSES:
            near = difflib.get_close_matches(cause, CAUSES, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else "docs/reference/causes.md lists them."
            raise HotlapError(f"There is no cause {cause!r}.", hint, EXIT_USAGE)
    result = _without(lint_paths(args.paths), args.ignore)
    if args.fix and any(p.edits for p in result.problems):
        _fix(result.problems)
        result = _without(lint_paths(args.paths), args.ignore)
    print(FORMATS[args.format](result))
    if result.unread:
        if args.format != "text":
            for file, why in result.unread:
                print(f"hotlap: {file}: {why}", file=sys.stderr)
        return EXIT_USAGE
    return EXIT_FAILED if result.problems else 0


def _without(result: Result, ignored: list[str]) -> Result:
    return Result([p for p in result.problems if p.cause not in ignored], result.files, result.unread)


def _fix(problems: list[Problem]) -> None:
    """All files or none."""
    by_file: dict[str, list[Wanted]] = defaultdict(list)
    for number, problem in enumerate(problems):
        by_file[problem.file] += [Wanted(edit, problem.cause, move=number) for edit in problem.edits]
    changed = {}
    for name, wanted in by_file.items():
        if not wanted:
            continue
        path = Path(name)
        done = patch_file(name, path.read_bytes(), wanted)
        for told in done.by_hand:
            print(f"hotlap: {told.file}:{told.line}: {told.by}: {told.text}", file=sys.stderr)
        if done.before != done.after:
            changed[path] = (done.before, done.after)
            print(f"hotlap: {name} changed: {', '.join(done.written)}.", file=sys.stderr)
    write_all(changed)
