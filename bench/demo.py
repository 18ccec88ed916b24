"""`hotlap speedup` on the example: causes found, speedup, share of the roof, beside the version fixed by hand.

Prints its figures last. ``--runs N`` runs the command N times: the figures are then those of the median run, with a
list of all of them. ``--save`` writes bench/results/demo.json, and what that run printed to demo.txt (README shows
it).
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
    """Run the command as a user would, in a folder of its own; its JSON, the wall time and what it printed."""
    file = folder / "speedup.json"
    command = [sys.executable, "-m", "hotlap", "speedup", "--json", str(file), "--runs", str(folder / "runs")]
    command += ["--plan", str(folder / "fast.yaml"), *(["--budget", budget] if budget else [])]
    began = time.monotonic()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # so that `python` is this one
    command += ["--", "python", "train.py"]
    said = []
    with subprocess.Popen(command, cwd=EXAMPLE, env={**os.environ, "PATH": path}, stderr=subprocess.PIPE,
                          text=True) as process:  # fmt: skip
        assert process.stderr is not None
        for row in process.stderr:
            print(row, end="", file=sys.stderr, flush=True)
            said.append(row)
    if process.returncode != 0:
        raise SystemExit(f"hotlap speedup ended with {process.returncode}.")
    console = report("".join(said), folder)
    return {**json.loads(file.read_text()), "command_s": time.monotonic() - began, "console": console}


def report(said: str, folder: Path) -> str:
    """What the command printed after its progress, without the run's temporary folder in its paths."""
    told = said[said.index(" train.py · ") :].replace(f"{folder}/", "")
    return re.sub(r"--runs\n +", "--runs ", told)  # the folder's long name was what broke the line


def of_run(got: dict[str, Any]) -> dict[str, Any]:
    """What is told of each run, from the JSON of the command."""
    return {
        "speedup": got["speedup"] or {"ratio": 1.0, "low": 1.0, "high": 1.0},
        "roof_share": got["roof_share"],
        "quality": (got["quality"] or {}).get("verdict"),
        "command_s": got["command_s"],
    }


def median_run(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run in the middle by its speedup, the lower of two. One run, so that its figures belong together."""
    return sorted(runs, key=lambda got: float(of_run(got)["speedup"]["ratio"]))[(len(runs) - 1) // 2]


def figures_of(runs: list[dict[str, Any]], put_in: list[dict[str, Any]], hand: dict[str, Any]) -> dict[str, Any]:
    """What is saved: the median run beside the fix by hand, and all runs in the order given."""
    got = median_run(runs)
    marks = [found(sin, got["findings"]) for sin in put_in]
    told = of_run(got)
    return {
        "causes_found": sum(mark != "no" for mark in marks),
        "causes_at_their_line": sum(mark in ("line", "function") for mark in marks),
        "causes_put_in": len(marks),
        **told,
        "by_hand": hand,
        "tool_over_hand": told["speedup"]["ratio"] / hand["ratio"],
        "runs": [of_run(run) for run in runs],
    }


def line(told: dict[str, Any]) -> str:
    """One run's figures."""
    tool, share = told["speedup"], told["roof_share"]
    roof = "unknown" if share is None else f"{100 * share:.0f} %"
    return (
        f"{tool['ratio']:.2f}x [{tool['low']:.2f}, {tool['high']:.2f}] · quality {told['quality']} · "
        f"share of the roof {roof} · whole command {told['command_s']:.0f} s"
    )


def main() -> None:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of train.py against train_fixed.py")
    parser.add_argument("--budget", help="passed on to hotlap speedup")
    parser.add_argument("--runs", type=int, default=1, help="of hotlap speedup (1)")
    parser.add_argument("--save", action="store_true", help="write bench/results/demo.json and demo.txt")
    args = parser.parse_args()
    runs = []
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory() as folder:
            runs.append(speedup_command(Path(folder), args.budget))
    put_in, got = sins(), median_run(runs)
    figures = figures_of(runs, put_in, by_hand(args.rounds))
    for sin in put_in:
        mark = found(sin, got["findings"])
        print(f"{sin['cause']:22s} train.py:{sin['line']:<4d} {sin['function']:24s} found: {mark}")
    for lever in got["levers"]:
        measured = f"{lever['measured']['ratio']:.2f}x" if lever["measured"] else "-"  # it came in with others
        print(f"  {'+' if lever['kept'] else ' '} {lever['id']:24s} {measured:>6s}  {lever['reason'] or ''}")
    if args.save:
        save("demo", figures).with_suffix(".txt").write_text(got["console"])
    hand = figures["by_hand"]
    spread = ", ".join(f"{r:.2f}" for r in hand["ratios"])
    at = f"{figures['causes_at_their_line']} with their place"
    print(f"causes found {figures['causes_found']} of {figures['causes_put_in']}, {at}")
    print(f"by hand {hand['ratio']:.2f}x (rounds {spread}) · tool over hand {figures['tool_over_hand']:.2f}")
    if len(runs) > 1:
        for number, told in enumerate(figures["runs"], 1):
            print(f"run {number} of {len(runs)}: {line(told)}")
    print(f"hotlap speedup {line(figures)}")


if __name__ == "__main__":
    main()
