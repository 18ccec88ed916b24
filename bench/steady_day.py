"""How often does the guard warn in a day of a training that stays as fast as it is?

    python bench/steady_day.py [--seconds 240] [--hours 24] [--save]

First bench/drift/slow.py trains under `hotlap run` for some minutes, without any fault. What was recorded of it is then
drawn anew, stretches of five seconds in random order, until a day is full: its steps with their noise and whatever
neighbours did to them, its validations, samples of stacks, memory and counters. The guard looks at that day as it
would, every five seconds of the timeline's clock. Every warning is false. Slow swings of a machine over hours are not
in it: those of the recorded minutes are all that there is. Exit code: 1 with more than one warning.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from results import save
from soak import wait_for_look

from hotlap.guard.guard import LOOK_S, Guard, Wishes
from hotlap.machine.facts import read_machine
from hotlap.probe.step_rows import EACH, FULL
from hotlap.records.guard import GuardRecord
from hotlap.records.run_folder import RunFolder, list_runs

SCRIPT = Path(__file__).parent / "drift" / "slow.py"
KIND = "steady-validation"
STRETCH_S = LOOK_S
WARM_S = 15.0
"""Left out at the recording's begin."""
MOST = 1
COUNTERS = ("cpu", "read_bytes", "write_bytes", "minor_faults", "system_cpu")
"""Of a tick: counted from the process's begin."""
Row = dict[str, Any]


def recorded(seconds: float, runs: Path) -> list[Row]:
    """The rows of a steady training's timeline."""
    script = [sys.executable, str(SCRIPT), KIND, str(seconds), str(10 * seconds)]
    command = [sys.executable, "-m", "hotlap", "run", "--runs", str(runs), "--", *script]
    subprocess.run(command, check=True, capture_output=True)
    (timeline,) = list_runs(runs)[-1].path.glob("timelines/run/*.jsonl")
    return [json.loads(line) for line in timeline.read_text(encoding="utf-8").splitlines()]


def stretches(rows: Sequence[Row]) -> list[list[Row]]:
    """What came in each five seconds, beginning with a step; ticks hold what was counted since the one before."""
    found: list[list[Row]] = []
    last: Row | None = None
    begun = next(row["t"] for row in rows if row["k"] == "step") + WARM_S * 1e9
    for row in rows:
        if row["k"] == "tick":
            last, row = row, row | {name: _since(row, last, name) for name in COUNTERS}
        if row["k"] not in ("step", "event", "site", "load", "hits", "tick") or row["t"] < begun:
            continue
        new = not found or row["t"] - found[-1][0]["t"] > STRETCH_S * 1e9
        if new and row["k"] == "step":
            found.append([])
        if found:
            found[-1].append(row)
    return found[:-1]  # the last one is cut short


def _since(row: Row, last: Row | None, name: str) -> int | None:
    return None if row[name] is None else row[name] - (last[name] if last else 0)


class Day:
    """The timeline of the day, in ``folder``: :meth:`advance` writes the next stretch."""

    def __init__(self, folder: Path, rows: Sequence[Row], seed: int) -> None:
        self._stretches = stretches(rows)
        self._draw = random.Random(seed)
        kept = [row for row in rows if row["k"] in ("header", "frame", "stack", "setting")]
        kept[0] |= {"pid": os.getpid(), "ppid": os.getppid()}
        self._file = open(folder / f"{os.getpid()}.jsonl", "w", encoding="utf-8", buffering=1 << 20)  # noqa: SIM115
        self._file.write("".join(json.dumps(row) + "\n" for row in kept))
        self.begun_ns = self.now_ns = kept[0]["t"]
        self.steps = self._rows = 0
        self._counted: dict[str, int] = {}
        self._sum: Row | None = None

    @property
    def made_s(self) -> float:
        return (self.now_ns - self.begun_ns) / 1e9

    def advance(self) -> None:
        rows = self._draw.choice(self._stretches)
        begun, first, later = rows[0]["t"], rows[0]["i"], self.now_ns - rows[0]["t"]
        step = self.steps
        for row in rows:
            made = row | {"t": row["t"] + later}
            if row["k"] == "step":
                made["i"], self.steps = self.steps, self.steps + row["n"]
                self.now_ns = made["t"] + row["w"]
            elif row["k"] == "event":
                made["i"] = step + row["i"] - first
            elif row["k"] == "tick":
                made |= {name: self._count(name, row[name]) for name in COUNTERS}
            for one in self._folded(made):
                self._file.write(json.dumps(one) + "\n")
        self._file.flush()
        assert self.now_ns > begun + later

    def _count(self, name: str, more: int | None) -> int | None:
        if more is None:
            return None
        self._counted[name] = self._counted.get(name, 0) + more
        return self._counted[name]

    def _folded(self, row: Row) -> Iterator[Row]:
        """As a long run writes its steps (hotlap.probe.step_rows): more and more of them in one row."""
        each = 1 if self._rows < FULL else 2 ** (1 + (self._rows - FULL) // EACH)
        if row["k"] != "step" or each == 1:
            self._rows += row["k"] == "step"
            yield row
            return
        held = self._sum
        if held is None:
            self._sum = row
        else:
            held["p"] = [None if a is None else a + (b or 0) for a, b in zip(held["p"], row["p"], strict=True)]
            held |= {name: held.get(name, 0) + row.get(name, 0) for name in ("n", "w", "s", "m", "lo", "lo_n")}
            held |= {"mx": max(held["mx"], row["mx"]), "l": row.get("l", [])}
        if self._sum is not None and self._sum["n"] >= each:
            self._rows += 1
            yield self._sum
            self._sum = None


def watched(rows: Sequence[Row], hours: float, seed: int) -> dict[str, Any]:
    """The guard over the day."""
    said: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder.create("steady", Path(name))
        day = Day(folder.timeline_dir("run"), rows, seed)
        watching = Guard(folder, read_machine(), Wishes(said.append, look_s=0.0))
        watching.start(os.getpid())
        looks, next_look_s = 0, LOOK_S
        while day.made_s < 3600 * hours:
            day.advance()
            if day.made_s < next_look_s:
                continue
            next_look_s = day.made_s + LOOK_S
            wait_for_look(watching, said)
            looks += 1
        watching.stop()
        record = folder.read("guard.json", GuardRecord)
    if record.notes:
        raise RuntimeError(f"the guard gave up: {record.notes}")
    return {"hours": hours, "steps": day.steps, "looks": looks, "stretches": len(day._stretches),
            "alarms": [asdict(alarm) for alarm in record.alarms]}  # fmt: skip


def main() -> int:
    """Record, draw, count; 1 when there is more than one warning."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=240.0, help="of real training (240)")
    parser.add_argument("--hours", type=float, default=24.0, help="of the day (24)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the stretches")
    parser.add_argument("--save", action="store_true", help="write bench/results/steady_day.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = recorded(options.seconds, Path(name))
    found = watched(rows, options.hours, options.seed)
    if options.save:
        save("steady_day", {"seconds": options.seconds, **found})
    for alarm in found["alarms"]:
        print(f"  false: {alarm['cause']} at step {alarm['at_step']}")
    print(f"{len(found['alarms'])} warnings in {options.hours:g} hours of steady training ({found['steps']:,} steps, "
          f"{found['looks']:,} looks, drawn from {found['stretches']} stretches of {STRETCH_S:g} s)")  # fmt: skip
    return int(len(found["alarms"]) > MOST)


if __name__ == "__main__":
    sys.exit(main())
