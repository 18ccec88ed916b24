"""The fast reference trainings in our plain loop, in Lightning and in Accelerate: throughput, and the same losses.

    python bench/loops.py [speaker_verify] [--data DIR] [--save]

The task is the same for all three (model, data, order of the rows, augmentation, update rule, arithmetic); the loops of
bench/loops are each written as the framework's documentation advises. They take turns, each turn in a process of
its own; only steps are timed, epoch starts included. A framework that is not installed is named.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from loader_rounds import Turn, medians, ratios, take_turns, turn
from results import save, without_folders

from hotlap_workloads.catalogue import NAMES
from hotlap_workloads.engine.overrides import parse_pairs

__all__ = ["difference", "main"]

FOLDER = Path(__file__).with_name("loops")
LOOPS = {"ours": "ours.py", "Lightning": "with_lightning.py", "Accelerate": "with_accelerate.py"}
DEFAULT = ("speaker_verify", "face_distill")


def difference(ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """How far two loss curves lie apart: whether all bits are equal, and the largest relative difference."""
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} losses cannot be compared with {len(theirs)}.")
    apart = max(abs(a - b) / max(abs(a), 1e-12) for a, b in zip(ours, theirs, strict=True))
    return {"equal_bits": ours == theirs, "largest_relative_difference": apart}


def play(args: argparse.Namespace, workload: str, out: Path, name: str) -> Turn | str:
    """A turn of one loop; its losses are in ``out``."""
    asked = {
        "workload": workload, "data": str(args.data.resolve()) if args.data else None, "out": str(out / "run"),
        "losses": str(out / f"{name}.json"), "warm": args.warm, "steps": args.steps,
        "set": {"trackers": "", **parse_pairs(args.set)},  # whatever is installed here
    }  # fmt: skip
    return turn(asked, script=FOLDER / LOOPS[name], limit_s=args.limit_s)


def compared(args: argparse.Namespace, workload: str) -> dict[str, Any]:
    """Rows of the three loops, ratios of ours over each, and how their losses differ."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        turns, failed = take_turns(list(LOOPS), partial(play, args, workload, out), args.rounds, args.limit_s)
        losses = {name: json.loads((out / f"{name}.json").read_text()) for name in turns}
    found: dict[str, Any] = {"loops": medians(turns), "failed": failed, "ours_over": {}, "losses": losses}
    for name in turns:
        if name != "ours" and "ours" in turns:
            found["ours_over"][name] = {
                **ratios(turns["ours"], turns[name], "samples_per_s"),
                **difference(losses["ours"], losses[name]),
            }
    return found


def main() -> None:
    """Take turns, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [name for name in DEFAULT if name in NAMES]
    parser.add_argument("workloads", nargs="*", help=f"default: {' '.join(known)}")
    parser.add_argument("--data", type=Path, help="for a single workload: its data set's folder")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--warm", type=int, default=5, help="steps before the window")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=270.0, help="per workload: begin no round that ends later")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all loops alike")
    parser.add_argument("--save", action="store_true", help="write bench/results/loops.json")
    args = parser.parse_args()
    if not 0 < args.warm < args.steps:
        parser.error("--warm must be at least 1 and less than --steps")
    names = args.workloads or known
    if args.data and len(names) > 1:
        parser.error("--data is for a single workload")
    figures = {name: compared(args, name) for name in names}
    for name, found in figures.items():
        for loop, row in found["loops"].items():
            print(f"{name} {loop:12} {row['samples_per_s']:8.1f} samples/s")
        for loop, row in found["ours_over"].items():
            same = "the same bits" if row["equal_bits"] else f"within {row['largest_relative_difference']:.1e}"
            print(f"{name} ours over {loop}: {row['median']:.3f} [{row['lowest']:.3f}, {row['highest']:.3f}], "
                  f"losses {same}")  # fmt: skip
        for loop, reason in found["failed"].items():
            print(f"{name} FAILED {loop}: {reason}")
    if args.save:
        data = args.data.name if args.data else "self-made data"
        asked = {"steps": args.steps, "warm": args.warm, "set": without_folders(args.set), "data": data}
        save("loops", {"workloads": figures, **asked})


if __name__ == "__main__":
    main()
