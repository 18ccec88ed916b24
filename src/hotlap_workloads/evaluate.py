"""Evaluate the model of a run.

python -m hotlap_workloads.evaluate speaker_verify --out runs/speaker_verify-fast --data DIR
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from hotlap_workloads.engine.overrides import parse_pairs
from hotlap_workloads.errors import ended
from hotlap_workloads.session import Request, data_of_run, opened, settings_of_run

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the metrics as JSON."""
    parser = argparse.ArgumentParser(prog="python -m hotlap_workloads.evaluate", description="Evaluate a run's model.")
    parser.add_argument("workload")
    parser.add_argument("--out", type=Path, required=True, help="the run's folder, with its checkpoint")
    parser.add_argument("--data", type=Path, help="the data set's folder; without it, what the run was trained on")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting of the run")
    parser.add_argument("--heavy", action="store_true", help="the heavy evaluation")
    parser.add_argument("--quarantine", action="store_true", help="leave unreadable files out")
    return ended(partial(evaluated, parser.parse_args(argv)))


def evaluated(args: argparse.Namespace) -> int:
    values = parse_pairs(args.set)
    request = Request(args.workload, args.out, values=values, data=args.data, quarantine=args.quarantine)
    request = replace(request, data=data_of_run(request))
    with opened(request, settings_of_run(request), lambda line: print(line, file=sys.stderr)) as trainer:
        metrics = trainer.evaluate_checkpoint(args.heavy)
        if trainer.context.ranks.first:
            print(json.dumps(metrics))
    return 0


if __name__ == "__main__":
    sys.exit(main())
