"""Taking turns: every way in a process of its own, round after round, and the medians over the rounds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Turn", "medians", "ratios", "take_turns", "turn"]

Turn = dict[str, float]
_SCRIPT = Path(__file__).with_name("loader_turn.py")
_TURN_S = 240.0
"""A turn of a loader that takes longer hangs."""


def turn(
    asked: dict[str, Any], prefix: tuple[str, ...] = (), script: Path = _SCRIPT, limit_s: float = _TURN_S
) -> Turn | str:
    """The figures of one turn of ``script``, or why there are none."""
    command = [*prefix, sys.executable, str(script), json.dumps(asked)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            out, err = "", f"it hung: no result after {limit_s:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers that outlive their loader
    last = (out.strip().splitlines() or [""])[-1]
    if last.startswith("{"):
        return {k: float(v) for k, v in json.loads(last).items()}
    return (err.strip().splitlines() or ["it died without a word"])[-1]


def take_turns(
    names: list[str], play: Callable[[str], Turn | str], rounds: int, limit_s: float,
    goes_on: Callable[[dict[str, list[Turn]]], set[str]] | None = None,
) -> tuple[dict[str, list[Turn]], dict[str, str]]:  # fmt: skip
    """(turns by name, reasons by name of those that failed). Stops at ``limit_s`` once a round is over.

    ``goes_on`` says after the first round which names get more turns; without it, all.
    """
    turns: dict[str, list[Turn]] = {}
    failed: dict[str, str] = {}
    begun = last = time.monotonic()
    for number in range(rounds):
        round_s, last = time.monotonic() - last, time.monotonic()
        if number == 1 and goes_on is not None:
            kept = goes_on(turns)
            round_s *= len(kept) / len(names)
            names = [name for name in names if name in kept]
        if number and time.monotonic() - begun + round_s > limit_s:
            print(f"{number} of {rounds} rounds fit {limit_s:.0f} s", file=sys.stderr)
            break
        for name in names:
            if name in failed:
                continue
            found = play(name)
            if isinstance(found, str):
                failed[name] = found
                turns.pop(name, None)  # a way that fails once has no median
            else:
                turns.setdefault(name, []).append(found)
            print(f"round {number + 1}: {name}", file=sys.stderr)
    return turns, failed


def medians(turns: dict[str, list[Turn]]) -> dict[str, dict[str, Any]]:
    """Per name the median of each figure, and its lowest and highest turn."""
    table = {}
    for name, found in turns.items():
        table[name] = {key: statistics.median(t[key] for t in found) for key in found[0]}
        table[name] |= {f"{key}_range": [f(t[key] for t in found) for f in (min, max)] for key in found[0]}
        table[name]["turns"] = len(found)
    return table


def ratios(ours: list[Turn], theirs: list[Turn], key: str) -> dict[str, float]:
    """Ours over theirs, round by round, so that what slows the machine in a round slows both."""
    found = [a[key] / b[key] for a, b in zip(ours, theirs, strict=False) if b[key] > 0]
    return {"median": statistics.median(found), "lowest": min(found), "highest": max(found)} if found else {}
