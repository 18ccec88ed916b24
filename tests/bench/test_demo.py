"""Figures of bench/demo.py from the JSON of several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from demo import figures_of, line, median_run, report, sins

HAND = {"train": [100.0], "train_fixed": [300.0], "ratios": [3.0], "ratio": 3.0}


def run(ratio: float | None, roof: float | None, verdict: str | None, command_s: float) -> dict[str, Any]:
    speedup = None if ratio is None else {"ratio": ratio, "low": ratio - 0.5, "high": ratio + 0.5}
    quality = None if verdict is None else {"verdict": verdict}
    return {"speedup": speedup, "roof_share": roof, "quality": quality, "command_s": command_s, "findings": []}


def test_figures_are_the_median_runs_own_and_every_run_is_listed() -> None:
    sin = sins()[0]
    where = {"file": "train.py", "line": sin["line"], "function": sin["function"]}
    named = [{"cause": sin["cause"], "where": [where]}]
    low, mid, top = run(2.0, 0.95, "proved", 200.0), run(3.3, 0.9, None, 240.0), run(4.0, 0.8, "not proved", 210.0)
    mid["findings"] = named
    figures = figures_of([top, low, mid], sins(), HAND)
    assert figures["speedup"] == {"ratio": 3.3, "low": 2.8, "high": 3.8} and figures["roof_share"] == 0.9
    assert figures["quality"] is None and figures["command_s"] == 240.0
    assert figures["tool_over_hand"] == pytest.approx(1.1) and figures["by_hand"] == HAND
    assert (figures["causes_found"], figures["causes_at_their_line"], figures["causes_put_in"]) == (1, 1, len(sins()))
    assert [told["speedup"]["ratio"] for told in figures["runs"]] == [4.0, 2.0, 3.3], "in the order given"
    assert figures["runs"][1] == {
        "speedup": {"ratio": 2.0, "low": 1.5, "high": 2.5},
        "roof_share": 0.95,
        "quality": "proved",
        "command_s": 200.0,
    }


def test_a_run_without_a_proof_counts_as_no_speedup() -> None:
    nothing, some = run(None, None, None, 100.0), run(2.0, 0.5, "proved", 100.0)
    assert median_run([some, nothing]) is nothing, "of two, the lower"
    assert median_run([some]) is some
    figures = figures_of([nothing], sins(), HAND)
    assert figures["speedup"]["ratio"] == 1.0 and figures["causes_found"] == 0 and len(figures["runs"]) == 1
    assert line(figures) == "1.00x [1.00, 1.00] · quality None · share of the roof unknown · whole command 100 s"


def test_the_report_is_kept_without_the_progress_before_it() -> None:
    said = " 0:00 / 3:45  diagnose\n train.py · CPU · 2 cores\n keep it: hotlap run --plan /tmp/x/fast.yaml\n"
    assert report(said, Path("/tmp/x")) == " train.py · CPU · 2 cores\n keep it: hotlap run --plan fast.yaml\n"
