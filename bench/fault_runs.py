"""Running the scripts of bench/faults: bare and timed from outside, under `hotlap diagnose`, under `hotlap speedup`."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fault_table import Fault
from prediction import rows_of

__all__ = ["by_hand", "diagnosed", "environment", "first_right", "left_alone", "speedup", "steps_per_s", "together"]

STEP = re.compile(r"step (\d+)\D.*?loss (\S+)")
ENDLESS = "1000000"
"""Steps for runs that are stopped from outside."""
WARM_STEPS = 20
MATERIAL = 0.05
"""Share of the step from which a finding about a healthy script is a false alarm; as in diagnose/policy.py."""
QUIET = ("nothing-to-gain",)


def environment() -> dict[str, str]:
    """The environment of all runs: torch takes all cores, unless ``HOTLAP_BENCH_THREADS`` says how many threads."""
    drop = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    kept = {k: v for k, v in os.environ.items() if k not in drop}
    threads = os.environ.get("HOTLAP_BENCH_THREADS")
    return {**kept, **({"OMP_NUM_THREADS": threads} if threads else {})}


def steps_per_s(script: Path, cwd: Path, last: int, before: Sequence[str] = ()) -> float:
    """Steps per second of a run, from step 20 to ``last``, by the clock of this process.

    ``before``: the words before the script's own command; none for a bare run.
    """
    at: dict[int, float] = {}
    command = [*before, sys.executable, str(script), "--steps", str(last)]
    with subprocess.Popen(
        command, cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if match := STEP.search(line):
                at.setdefault(int(match[1]), time.monotonic())
    if process.returncode or last not in at:
        raise RuntimeError(f"{script.name} ended with {process.returncode} before step {last}")
    return (last - WARM_STEPS) / (at[last] - at[WARM_STEPS])


def by_hand(fault: Fault, cwd: Path, last: int) -> tuple[float, float]:
    """The slow script and the one fixed by hand, one after the other: steps per second of each."""
    return steps_per_s(fault.script, cwd, last), steps_per_s(fault.fixed, cwd, last)


def together(rounds: list[tuple[float, float]]) -> dict[str, Any]:
    """What several rounds of :func:`by_hand` come to: the ratio of each, and their median."""
    slow, fixed = map(list, zip(*rounds, strict=True))
    ratios = [b / a for a, b in rounds]
    return {"slow_steps_per_s": slow, "fixed_steps_per_s": fixed, "ratios": ratios, "ratio": statistics.median(ratios)}


def _hotlap(command: str, fault: Fault, cwd: Path, options: list[str], script: list[str]) -> dict[str, Any]:
    """The JSON that a command of Hotlap leaves."""
    out = cwd / f"{command}.json"
    out.unlink(missing_ok=True)
    words = [sys.executable, "-m", "hotlap", command, "--json", str(out), "--runs", str(cwd / "runs"), *options]
    done = subprocess.run(
        [*words, "--", sys.executable, str(fault.script), *script],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if not out.exists():
        raise RuntimeError(f"hotlap {command} on {fault.name} ended with {done.returncode}: {done.stderr[-2000:]}")
    got: dict[str, Any] = json.loads(out.read_text())
    return got


def _short(finding: dict[str, Any]) -> dict[str, Any]:
    where = [[Path(w["file"]).name, w["line"], w["text"]] for w in finding["where"]]
    return {"cause": finding["cause"], "share": finding["share"], "detail": finding["detail"], "where": where}


def diagnosed(fault: Fault, cwd: Path) -> list[dict[str, Any]]:
    """The findings of a watched run of the whole script, in their order, cut to what is scored."""
    got = _hotlap("diagnose", fault, cwd, ["--no-confirm"], [])
    return [_short(finding) for finding in got["findings"]]


def first_right(fault: Fault, findings: list[dict[str, Any]]) -> tuple[bool, bool, bool]:
    """Whether the first cause is right, whether its first line is, and whether that line is the red herring."""
    if not findings:
        return False, False, False
    first = findings[0]
    place = first["where"][0][:2] if first["where"] else None
    right_cause = first["cause"] in fault.causes
    right_line = place is not None and place[0] == fault.script.name and place[1] in fault.right_lines
    return right_cause, right_line, place == [fault.script.name, fault.herring_line]


def left_alone(findings: list[dict[str, Any]]) -> bool:
    """Whether nothing material was found."""
    return not [f for f in findings if f["cause"] not in QUIET and f["share"] >= MATERIAL]


def speedup(fault: Fault, cwd: Path, budget: str | None) -> dict[str, Any]:
    """What `hotlap speedup` claims for the script, the levers it kept, and what was predicted of those it tried."""
    options = ["--plan", str(cwd / "fast.yaml"), *(["--budget", budget] if budget else [])]
    got = _hotlap("speedup", fault, cwd, options, ["--steps", ENDLESS])
    interval = got["speedup"] if got.get("plan") else None
    return {
        "ratio": interval["ratio"] if interval else 1.0,
        "interval": interval,
        "kept": [lever["id"] for lever in got["levers"] if lever["kept"]],
        "tried": {lever["id"]: lever["reason"] for lever in got["levers"] if not lever["kept"]},
        "predictions": rows_of(got),
        "quality": (got["quality"] or {}).get("verdict"),
        "quality_says": (got["quality"] or {}).get("summary"),
        "roof_share": got["roof_share"],
    }
