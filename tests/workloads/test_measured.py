"""The list of presets tells what was measured, and says so where nothing was."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from hotlap_workloads import catalogue
from hotlap_workloads.catalogue import NAMES, find_workload, listing
from hotlap_workloads.engine.machine import Machine
from hotlap_workloads.measured import Measured, measured


def test_the_list_tells_what_was_measured_and_what_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [
        Measured(212.34, "a CPU, 2 cores", "clips", "2026-01-02"),
        Measured(1900.0, "a SIMULATED A100", "clips", "x"),
    ]
    monkeypatch.setattr(catalogue, "measured", lambda name, preset: known if preset == "fast" else [])
    lines = list(listing(Machine(2)))
    fast = next(number for number, line in enumerate(lines) if line.startswith("  fast:"))
    assert lines[fast + 2 : fast + 4] == [
        "      measured: 212.3 samples/s on a CPU, 2 cores (clips, 2026-01-02)",
        "      measured: 1900.0 samples/s on a SIMULATED A100 (clips, x)",
    ]
    presets = sum(len(find_workload(name).presets) for name in NAMES)
    with_fast = sum("fast" in find_workload(name).presets for name in NAMES)
    assert lines.count("      not measured") == presets - with_fast


def test_the_shipped_file_is_of_presets_that_exist() -> None:
    document = json.loads(files("hotlap_workloads").joinpath("measured.json").read_text(encoding="utf-8"))
    assert set(document) <= set(NAMES)
    for name, presets in document.items():
        assert set(presets) <= set(find_workload(name).presets)
        for preset in presets:
            assert all(row.samples_per_s > 0 and row.on and row.date for row in measured(name, preset))
