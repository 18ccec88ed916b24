"""`hotlap speedup` on the example: causes found, speedup, share of the roof, beside the version fixed by hand.

Prints its figures last. ``--save`` writes bench/results/demo.json; ``--keep FILE`` reuses a `--json` of an earlier run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from results import save

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "speaker"
STEP = re.compile(r"Step (\d+)/\d+  loss")
BATCH = 32
CYCLE = 120
"""Steps after which validations (120) and checkpoints (40) have come round: windows are whole multiples of it."""


def sins() -> list[dict[str, Any]]:
    """The causes put into train.py, each with its line number as ``line``."""
    lines = (EXAMPLE / "train.py").read_text().splitlines()
    out = []
    for sin in json.loads((EXAMPLE / "sins.json").read_text()):
        at = [k for k, line in enumerate(lines, 1) if sin["snippet"] in line]
        assert len(at) == 1, f"{sin['snippet']!r} stands on lines {at}"
        out.append({**sin, "line": at[0]})
    return out


def found(sin: dict[str, Any], findings: list[dict[str, Any]]) -> str:
    """``line``, ``function``, ``cause`` (named, but not where) or ``no``."""
    best = "no"
    for finding in findings:
        if finding["cause"] != sin["cause"]:
            continue
        best = "cause" if best == "no" else best
        for where in finding["where"]:
            if Path(where["file"]).name != "train.py":
                continue
            if where["line"] == sin["line"]:
                return "line"
            if where["function"].split(".")[-1] == sin["function"].split(".")[-1]:
                best = "function"
    return best


def samples_per_s(script: str, first: int, last: int, out: Path) -> float:
    """Throughput of a bare run between two of its steps, by the clock of this process."""
    command = [sys.executable, str(EXAMPLE / script), "--steps", str(last), "--out", str(out)]
    at: dict[int, float] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            match = STEP.match(line)
            if match:
                at[int(match[1])] = time.monotonic()
    return (last - first) * BATCH / (at[last] - at[first])


def by_hand(rounds: int) -> dict[str, Any]:
    """train.py and train_fixed.py in turn: medians, and the ratio of each round."""
    plain, fixed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            plain.append(samples_per_s("train.py", 10, 10 + CYCLE, Path(folder)))
            fixed.append(samples_per_s("train_fixed.py", 20, 20 + 3 * CYCLE, Path(folder)))
    ratios = sorted(b / a for a, b in zip(plain, fixed, strict=True))
    return {"train": plain, "train_fixed": fixed, "ratios": ratios, "ratio": statistics.median(ratios)}


def speedup_command(folder: Path, budget: str | None) -> dict[str, Any]:
    """Run the command as a user would, in a folder of its own; its JSON and the wall time."""
    file = folder / "speedup.json"
    command = [sys.executable, "-m", "hotlap", "speedup", "--json", str(file), "--runs", str(folder / "runs")]
    command += ["--plan", str(folder / "fast.yaml"), *(["--budget", budget] if budget else [])]
    began = time.monotonic()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # so that `python` is this one
    subprocess.run([*command, "--", "python", "train.py"], cwd=EXAMPLE, check=True, env={**os.environ, "PATH": path})
    return {**json.loads(file.read_text()), "command_s": time.monotonic() - began}


def main() -> None:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of train.py against train_fixed.py")
    parser.add_argument("--budget", help="passed on to hotlap speedup")
    parser.add_argument("--keep", type=Path, help="use this --json file instead of running hotlap speedup")
    parser.add_argument("--save", action="store_true", help="write bench/results/demo.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        got = json.loads(args.keep.read_text()) if args.keep else speedup_command(Path(folder), args.budget)
    hand = by_hand(args.rounds)
    marks = [(sin, found(sin, got["findings"])) for sin in sins()]
    for sin, mark in marks:
        print(f"{sin['cause']:22s} train.py:{sin['line']:<4d} {sin['function']:24s} found: {mark}")
    for lever in got["levers"]:
        measured = lever["measured"]["ratio"] if lever["measured"] else float("nan")
        print(f"  {'+' if lever['kept'] else ' '} {lever['id']:24s} {measured:5.2f}x  {lever['reason'] or ''}")
    tool = got["speedup"] or {"ratio": 1.0, "low": 1.0, "high": 1.0}
    figures = {
        "causes_found": sum(mark != "no" for _, mark in marks),
        "causes_at_their_line": sum(mark in ("line", "function") for _, mark in marks),
        "causes_put_in": len(marks),
        "speedup": tool,
        "roof_share": got["roof_share"],
        "quality": (got["quality"] or {}).get("verdict"),
        "by_hand": hand,
        "tool_over_hand": tool["ratio"] / hand["ratio"],
        "command_s": got.get("command_s", got["wall_s"]),
    }
    if args.save:
        save("demo", figures)
    print(f"causes found {figures['causes_found']} of {len(marks)}, {figures['causes_at_their_line']} with their place")
    print(f"hotlap speedup {tool['ratio']:.2f}x [{tool['low']:.2f}, {tool['high']:.2f}] · quality {figures['quality']}")
    spread = ", ".join(f"{r:.2f}" for r in hand["ratios"])
    print(f"by hand {hand['ratio']:.2f}x (rounds {spread}) · tool over hand {figures['tool_over_hand']:.2f}")
    share = "unknown" if got["roof_share"] is None else f"{100 * got['roof_share']:.0f} %"
    print(f"share of the roof {share} · whole command {figures['command_s']:.0f} s")


if __name__ == "__main__":
    main()
