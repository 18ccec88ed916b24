"""Options that several commands share."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from hotlap.cli.option_types import duration, positive, share
from hotlap.lap.options import Options
from hotlap.lever.registry import lever
from hotlap.plan.knobs import parse_knobs
from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.knob import Knob
from hotlap.records.plan import PRESERVES

__all__ = [
    "add_measuring",
    "add_output",
    "add_sandbox",
    "add_search",
    "check_json_folder",
    "measuring_options",
]

KNOB_VALUE_S = 40.0
"""What each value of a knob adds to the default budget: a start, a trial, and its share of the proof."""


def _allow(text: str) -> frozenset[str]:
    names = [n.strip() for n in text.split(",") if n.strip()]
    for name in names:
        if name not in PRESERVES:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(PRESERVES)}")
    return frozenset(names)


def add_output(parser: argparse.ArgumentParser) -> None:
    """``--json`` and ``--runs``."""
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result as JSON (docs/reference/json.md)")
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept (default: .hotlap)")


def add_sandbox(parser: argparse.ArgumentParser) -> None:
    """``--no-sandbox`` and ``--scratch``."""
    parser.add_argument(
        "--no-sandbox",
        action="store_true",
        help="let trials write to your real files (only where no sandbox is possible)",
    )
    parser.add_argument(
        "--scratch", metavar="DIR", help="where a trial's writes go, on another file system (default: memory)"
    )


def add_measuring(parser: argparse.ArgumentParser, budget: str, steps: str) -> None:
    """Options of commands that run trials; ``budget`` and ``steps`` are help texts."""
    add_output(parser)
    parser.add_argument("--budget", metavar="TIME", type=duration, help=budget)
    parser.add_argument("--steps", metavar="N", type=positive, help=steps)
    add_sandbox(parser)
    parser.add_argument("--no-confirm", action="store_true", help="do not take causes away to confirm them; no roof")


def measuring_options(args: argparse.Namespace, command: list[str], default_budget_s: float) -> Options:
    """Options from parsed arguments. An unknown lever is an error that names the nearest."""
    only = frozenset(getattr(args, "only", None) or [])
    skip = frozenset(getattr(args, "skip", None) or [])
    knobs = _knobs(args, command)
    for name in only | skip:
        if name not in {knob.id for knob in knobs}:
            lever(name)
    check_json_folder(args.json)
    return Options(
        command=command,
        budget_s=args.budget or default_budget_s + KNOB_VALUE_S * sum(len(knob.values) for knob in knobs),
        budget_asked=args.budget is not None,
        steps=args.steps,
        allow=getattr(args, "allow", None) or Options.allow,
        only=only,
        skip=skip,
        sandbox=not args.no_sandbox,
        scratch=args.scratch,
        runs=args.runs,
        seeds=getattr(args, "seeds", 4),
        margin=getattr(args, "margin", None),
        confirm=not args.no_confirm,
        knobs=tuple(knob for knob in knobs if knob.id not in skip),
    )


def check_json_folder(file: Path | None, option: str = "--json") -> None:
    """Raises HotlapError where the file of ``--json`` could not be written in the end."""
    if file is not None and file.is_dir():
        raise HotlapError(f"{option} {file} is a folder.", "Name a file in it.", EXIT_USAGE)
    if file is not None and not file.absolute().parent.is_dir():
        raise HotlapError(f"The folder of {option} {file} does not exist.", "Make it first.", EXIT_USAGE)
    try:
        if file is not None:  # permissions do not say it all: /proc takes no file
            tempfile.TemporaryFile(dir=file.absolute().parent).close()
    except OSError as err:
        what = f"{option} {file} could not be written: {err.strerror}."
        raise HotlapError(what, "Name a file in a folder that you can write.", EXIT_USAGE) from err


def _knobs(args: argparse.Namespace, command: list[str]) -> tuple[Knob, ...]:
    """The knobs of ``--knob``. They change the training itself, which has to be allowed in so many words."""
    texts = getattr(args, "knob", None) or []
    if texts and "goal" not in (args.allow or Options.allow):
        hint = "Add `--allow bits,maths,distribution,goal` (or `--allow goal` for the knobs alone)."
        raise HotlapError("--knob changes the training itself, and `goal` is not allowed.", hint, EXIT_USAGE)
    return parse_knobs(texts, command)


def add_search(parser: argparse.ArgumentParser) -> None:
    """Options of the search for levers."""
    parser.add_argument(
        "--allow",
        metavar="WHAT",
        type=_allow,
        help="what levers may change: bits,maths,distribution[,goal] (default: the first three)",
    )
    parser.add_argument(
        "--knob",
        metavar="SPEC",
        action="append",
        help="a setting of the script's own to try (repeatable): 'batch=--batch-size {24,32}', or a key of its "
        "configuration file: 'val=test_interval={1,2}@config.yaml'; needs goal in --allow",
    )
    parser.add_argument("--only", metavar="LEVER", action="append", help="try only this lever (repeatable)")
    parser.add_argument("--skip", metavar="LEVER", action="append", help="do not try this lever (repeatable)")
    parser.add_argument(
        "--seeds", metavar="N", type=positive, default=4, help="launches of each arm in the proof, a seed for each (4)"
    )
    parser.add_argument("--margin", metavar="SHARE", type=share, help="non-inferiority margin of the loss, e.g. 0.02")
    parser.add_argument(
        "--plan", metavar="FILE", type=Path, default=Path("fast.yaml"), help="where to write the plan (fast.yaml)"
    )
