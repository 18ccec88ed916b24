"""A day drawn from a recorded steady training: it has to be a timeline that the guard takes for a long run's."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import steady_day

from hotlap.records.rows import Tick
from hotlap.records.timeline import read_timeline

STEP_NS = 50_000_000


def recording(seconds: float) -> list[dict[str, Any]]:
    """Steps of 50 ms, a tick a second with 100 page faults more, a validation every five seconds."""
    header = {"k": "header", "schema": "hotlap.timeline/1", "hotlap": "0", "role": "train", "pid": 1, "ppid": 0,
              "rank": 0, "world": 1, "argv": [], "cwd": "/", "python": "3", "torch": "2", "device": "cpu", "t": 0,
              "unix_s": 0.0}  # fmt: skip
    rows = [header, {"k": "frame", "id": 1, "file": "a.py", "line": 1, "func": "f", "user": True}]
    for i in range(int(seconds * 1e9 / STEP_NS)):
        t = i * STEP_NS
        rows.append({"k": "step", "i": i, "n": 1, "t": t, "w": STEP_NS, "p": [1, None, STEP_NS - 1, *[0] * 9], "s": 4,
                     "m": 1, "mx": STEP_NS, **({"l": [1.0]} if i % 7 else {})})  # fmt: skip
        if i % 20 == 19:
            rows.append({"k": "tick", "t": t + STEP_NS, "rss_bytes": 1, "cpu": i, "children_rss_bytes": 0,
                         "read_bytes": None, "write_bytes": 0, "device_bytes": None, "device_busy_frac": None,
                         "minor_faults": 5 * (i + 1), "system_cpu": 0})  # fmt: skip
        if i % 100 == 50:
            rows.append({"k": "event", "kind": "validation", "t": t, "w": 5, "i": i, "stack": None, "d": {}})
    return rows


def test_what_is_warm_and_whole_is_drawn_from() -> None:
    parts = steady_day.stretches(recording(60))
    assert len(parts) == 8, "of 45 s after the warm-up, the last cut short"
    assert all(part[0]["k"] == "step" for part in parts)
    assert {row["minor_faults"] for part in parts for row in part if row["k"] == "tick"} == {100}


def test_the_day_is_a_timeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady_day, "FULL", 300)
    monkeypatch.setattr(steady_day, "EACH", 100)
    day = steady_day.Day(tmp_path, recording(60), seed=1)
    while day.made_s < 60:
        day.advance()
    timeline = read_timeline(tmp_path / f"{os.getpid()}.jsonl")
    steps = timeline.step
    assert [row.i for row in steps] == [sum(row.n for row in steps[:k]) for k in range(len(steps))], (
        "none lost or twice"
    )
    assert all(a.t + a.w <= b.t for a, b in pairwise(steps))
    assert {row.w for row in steps if row.n == 1} == {STEP_NS} and steps[-1].n == 8
    ticks = [row for row in timeline.tick if isinstance(row, Tick)]
    assert [tick.minor_faults for tick in ticks] == [100 * (k + 1) for k in range(len(ticks))]
    begun = {row.i: row.t for row in steps[:300]}
    early = [event for event in timeline.event if event.i < 300]
    assert early and all(event.t == begun[event.i] for event in early), "each where its step is"


def test_more_than_one_warning_falls_short(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    alarm = {"cause": "throttling", "at_step": 7}
    monkeypatch.setattr(steady_day, "recorded", lambda seconds, runs: [])
    monkeypatch.setattr("sys.argv", ["steady_day.py"])
    for alarms, code in (([], 0), ([alarm], 0), ([alarm, alarm], 1)):
        found = {"alarms": alarms, "steps": 10, "looks": 2, "stretches": 3}
        monkeypatch.setattr(steady_day, "watched", lambda rows, hours, seed, found=found: found)
        assert steady_day.main() == code
    assert "false: throttling at step 7" in capsys.readouterr().out
