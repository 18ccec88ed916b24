"""What does it save to cut padding, and to put texts of like length into one batch? The same training bare and with
trim-padding alone, in turn.

    python bench/padding.py [--rounds 3] [--steps 120] [--save]

bench/padding/text.py pads every batch to one length, or each to its longest text. Printed are the steps per second
over those of the bare run, round by round, and which part of what the model computed was content. ``--save`` writes
bench/results/padding.json.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fault_runs import STEP, WARM_STEPS, environment
from results import save

from hotlap.lever.catalog import trim_padding

SCRIPT = Path(__file__).with_name("padding") / "text.py"
SETTING = {"sequence": 1, "image": 32}
"""As the lever has it on a CPU."""
CONTENT = re.compile(r"content ([\d.]+)")
PADDED = {"to one length": ["--one-length"], "each batch to its longest": []}
POOLS = {"bare": None, "cut": 0, "like lengths together": trim_padding.POOL}


def run(words: list[str], cwd: Path, pool: int | None, steps: int) -> tuple[float, float]:
    """Steps per second after the first ones, and the content's part of what was computed."""
    before: list[str] = []
    if pool is not None:
        move = {"lever": trim_padding.ID, "setting": SETTING | {"pool": pool}, "preserves": trim_padding.PRESERVES}
        plan = cwd / f"pool{pool}.yaml"
        plan.write_text(json.dumps({"schema": "hotlap.plan/1", "moves": [move]}), encoding="utf-8")
        before = [sys.executable, "-m", "hotlap", "run", "--plan", str(plan), "--runs", str(cwd / "runs"), "--"]
    command = [*before, sys.executable, str(SCRIPT), "--steps", str(steps), *words]
    at: dict[int, float] = {}
    content = None
    with subprocess.Popen(command, cwd=cwd, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if match := STEP.search(line):
                at[int(match[1])] = time.monotonic()
            elif match := CONTENT.match(line):
                content = float(match[1])
    if process.returncode or steps not in at or content is None:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return (steps - WARM_STEPS) / (at[steps] - at[WARM_STEPS]), content


def measure(args: argparse.Namespace, cwd: Path) -> dict[str, Any]:
    """By how batches are padded and by arm: rates and shares of content, round by round."""
    found: dict[str, Any] = {}
    for number in range(args.rounds):
        for padded, words in PADDED.items():
            arms = found.setdefault(padded, {})
            for arm, pool in POOLS.items():
                if arm == "cut" and "--one-length" not in words:
                    continue  # there is nothing to cut
                rate, content = run(words, cwd, pool, args.steps)
                row = arms.setdefault(arm, {"steps_per_s": [], "content": [], "ratios": []})
                row["steps_per_s"].append(rate)
                row["content"].append(content)
                row["ratios"].append(rate / arms["bare"]["steps_per_s"][number])
                print(
                    f"round {number + 1}: {padded}, {arm}: {rate:.2f} steps/s, content {100 * content:.0f} %",
                    flush=True,
                )
    return found


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=120, help=f"of each run; the first {WARM_STEPS} are not counted")
    parser.add_argument("--save", action="store_true", help="write bench/results/padding.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(args, Path(folder))
    if args.save:
        save("padding", {"padded": found, "rounds": args.rounds, "steps": args.steps})
    for padded, arms in found.items():
        for arm, row in arms.items():
            low, high = min(row["ratios"]), max(row["ratios"])
            print(f"{padded}, {arm}: {statistics.median(row['ratios']):.2f}x [{low:.2f}, {high:.2f}], content "
                  f"{100 * statistics.median(row['content']):.0f} % of what is computed")  # fmt: skip


if __name__ == "__main__":
    main()
