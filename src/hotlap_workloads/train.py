"""Train a reference workload.

python -m hotlap_workloads.train speaker_verify --preset fast --data DIR
torchrun --nproc-per-node 2 -m hotlap_workloads.train speaker_verify --preset fast --data DIR
python -m hotlap_workloads.train --list
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from hotlap_workloads.catalogue import NAMES, listing
from hotlap_workloads.engine.machine import read_machine
from hotlap_workloads.engine.overrides import parse_pairs
from hotlap_workloads.errors import EXIT_USAGE, ended
from hotlap_workloads.session import Request, opened, settings_of

__all__ = ["main"]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hotlap_workloads.train", description="Train a reference workload.")
    parser.add_argument("workload", nargs="?", help=", ".join(NAMES))
    parser.add_argument("--list", action="store_true", help="workloads, presets, and what each changes against slow")
    parser.add_argument("--preset", default="fast", help="where the settings begin (default fast)")
    parser.add_argument("--profile", default="", help="fastest, reproducible or balanced, over the preset")
    parser.add_argument("--config", type=Path, help="YAML, or JSON (.conf, .json), over preset and profile")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, over all others")
    parser.add_argument("--data", type=Path, help="the data set's folder; without it, a small set is made")
    parser.add_argument(
        "--out", type=Path, help="the run's folder (default runs/WORKLOAD-PRESET); resumed if it exists"
    )
    parser.add_argument(
        "--quarantine", action="store_true", help="leave unreadable files out, list them in quarantine.txt"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Train; the exit code says how it ended."""
    return ended(partial(trained, arguments().parse_args(argv)))


def trained(args: argparse.Namespace) -> int:
    say = partial(print, flush=True)
    if args.list:
        say("\n".join(listing(read_machine())))  # at once: a reader that stops in its middle breaks no pipe
        return 0
    if args.workload is None:
        print(f"Which workload? {', '.join(NAMES)}. --list says more.", file=sys.stderr)
        return EXIT_USAGE
    out = args.out or Path("runs") / f"{args.workload}-{args.preset}"
    values = parse_pairs(args.set)
    request = Request(args.workload, out, args.preset, args.profile, args.config, values, args.data, args.quarantine)
    first = os.environ.get("RANK", "0") == "0"
    with opened(request, settings_of(request, say=say if first else None), say) as trainer:
        result = trainer.run()
    if first and result.skipped:
        say(f"{result.skipped} steps were left out: their loss was no number.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
