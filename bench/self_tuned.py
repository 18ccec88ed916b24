"""How much of a tuning by hand does `hotlap speedup` reach by itself, on the reference trainings?

    python bench/self_tuned.py speaker_verify [--data DIR] [--budget 225s] [--save]

First the slow preset, untouched, under `hotlap speedup`; then three arms in turns of some seconds, by the clock
outside, each frozen while another runs: the slow preset as it is, the slow preset with the plan that was found
(`hotlap run --plan`), and the fast preset at the slow one's model, batch and cadences. The share is the plan's
throughput over that of the tuning by hand, round by round. All are told to train for so many epochs that none ends by
itself. On self-made data, whose epochs have a fiftieth of a real set's steps, evaluations and checkpoints come as many
steps apart as on a real one, for all alike. What is done once is in nobody's rate: the tuning by hand packs and asks
the teacher before its first step, the plan's caches fill in the first epochs, ``--warm`` steps of which come before the
first turn.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from results import save, without_folders
from turns import Training

from hotlap_workloads.catalogue import NAMES
from hotlap_workloads.engine.overrides import parse_pairs
from hotlap_workloads.engine.settings import EngineSettings
from hotlap_workloads.session import Request, settings_of

__all__ = ["KEPT", "by_hand", "main"]

ASKED = 0.90
KEPT = (
    *("batch_size", "accumulate", "epochs", "max_steps", "evaluate_every_epochs", "heavy_every_epochs"),
    *("checkpoint_every_epochs", "print_every_steps", "search_batch_size"),
)
"""What the tuning by hand leaves as slow has it: other values would be another training, which no lever may choose."""
PERIODIC = ("evaluate_every_epochs", "heavy_every_epochs", "checkpoint_every_epochs")
LONGER = 50
"""Epochs of a real data set are so many times as long as those of the self-made one, as in ladder.py."""


def by_hand(slow: EngineSettings) -> list[str]:
    """``--set`` values that hold the fast preset to slow's batch and cadences."""
    return [f"{name}={str(value).lower()}" for name in KEPT if (value := getattr(slow, name)) is not None]


def paced(args: argparse.Namespace, name: str) -> list[str]:
    """``--set`` values for all arms: what is periodic, as many steps apart as slow has it on data of real size."""
    if args.data:
        return []
    slow = settings_of(Request(name, Path(), "slow"))
    return [f"{key}={LONGER * getattr(slow, key)}" for key in PERIODIC if getattr(slow, key)]


def command(args: argparse.Namespace, name: str, preset: str, out: Path, values: list[str]) -> list[str]:
    words = [sys.executable, "-m", "hotlap_workloads.train", name, "--preset", preset, "--out", str(out)]
    words += ["--data", str(args.data.resolve())] if args.data else []
    values = ["trackers=", *values, *paced(args, name), *args.set]  # whatever is installed here
    return [*words, *(word for value in values for word in ("--set", value))]


def tuned(args: argparse.Namespace, name: str, cwd: Path) -> dict[str, Any]:
    """`hotlap speedup` on the slow preset, as a user would call it."""
    out = cwd / "speedup.json"
    words = [sys.executable, "-m", "hotlap", "speedup", "--json", str(out), "--runs", str(cwd / "runs")]
    words += ["--plan", str(cwd / "fast.yaml"), *(["--budget", args.budget] if args.budget else [])]
    begun = time.monotonic()
    script = command(args, name, "slow", cwd / "tried", [f"epochs={args.epochs}"])
    done = subprocess.run([*words, "--", *script], cwd=cwd, check=False)
    if not out.exists():
        raise RuntimeError(f"hotlap speedup on {name} ended with {done.returncode}")
    got: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    kept = [lever["id"] for lever in got["levers"] if lever["kept"]]
    keys = ("speedup", "quality", "roof_share", "status", "verdict")
    return {**{key: got[key] for key in keys}, "kept": kept, "command_s": time.monotonic() - begun}


def compared(args: argparse.Namespace, name: str, cwd: Path) -> dict[str, Any]:
    """The three arms in turns; ratios round by round."""
    slow = settings_of(Request(name, Path(), "slow", values=parse_pairs(args.set), data=args.data))
    plan, every = cwd / "fast.yaml", slow.print_every_steps
    run = [sys.executable, "-m", "hotlap", "run", "--plan", str(plan), "--runs", str(cwd / "runs"), "--"]
    first, each = (every * max(1, round(steps / every)) for steps in (args.warm, args.steps))
    long = [f"epochs={args.epochs}"]
    words = {"slow": command(args, name, "slow", cwd / "slow", long)}
    if plan.exists():
        words["plan"] = [*run, *command(args, name, "slow", cwd / "plan", long)]
    words["hand"] = command(args, name, "fast", cwd / "hand", [*by_hand(slow), *long])
    rates: dict[str, list[float]] = {"slow": [], "plan": [], "hand": []}
    arms: dict[str, Training] = {}
    try:
        for key, arm_words in words.items():
            arms[key] = Training(arm_words, cwd)
            arms[key].run_to(first)
        for number in range(args.rounds):
            for key in sorted(arms, reverse=bool(number % 2)):
                rates[key].append(arms[key].turn(each))
    finally:
        for arm in arms.values():
            arm.end()
    plans = rates["plan"] or rates["slow"]  # no plan was found: the slow preset is what the user is left with
    found: dict[str, Any] = {"steps_per_s": rates, "plan_found": bool(rates["plan"])}
    found |= {"steps": each, "after": first, "turns": True}
    pairs = {"hand_over_slow": (rates["hand"], rates["slow"]), "plan_over_slow": (plans, rates["slow"]),
             "share": (plans, rates["hand"])}  # fmt: skip
    for key, (ours, theirs) in pairs.items():
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        found[key] = {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}
    return found


def main() -> None:
    """Tune, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=NAMES)
    parser.add_argument("--data", type=Path, help="its data set's folder")
    parser.add_argument("--budget", help="passed on to hotlap speedup")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--warm", type=int, default=120, help="steps before the first turn, rounded in the same way")
    parser.add_argument("--steps", type=int, default=40, help="of a turn, rounded to lines of progress")
    parser.add_argument("--epochs", type=int, default=300, help="of every run: enough that none ends by itself")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all arms alike")
    parser.add_argument("--save", action="store_true", help="write bench/results/self_tuned_WORKLOAD[_BUDGET].json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        tool = tuned(args, args.workload, Path(folder))
        found = {"tool": tool, **compared(args, args.workload, Path(folder))}
    if args.save:
        about = {"asked": ASKED, "set": without_folders(args.set), "budget": args.budget or "the default"}
        suffix = f"_{args.budget}" if args.budget else ""
        data = {"data": args.data.name if args.data else "self-made data"}
        save(f"self_tuned_{args.workload}{suffix}", found | about | data)
    kept = " ".join(tool["kept"]) or "no lever"
    print(f"{args.workload}: kept {kept}; quality {(tool['quality'] or {}).get('verdict')}")
    for key, words in (("plan_over_slow", "hotlap speedup"), ("hand_over_slow", "by hand"),
                       ("share", f"share of the tuning by hand (asked {ASKED:.2f})")):  # fmt: skip
        row = found[key]
        print(f"  {words}: {row['median']:.2f} [{row['lowest']:.2f}, {row['highest']:.2f}]", flush=True)


if __name__ == "__main__":
    main()
