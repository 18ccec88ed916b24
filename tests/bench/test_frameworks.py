"""The table of levers by framework is whole: every lever, every framework, and a reason for every "no effect"."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hotlap.lever.registry import levers
from hotlap.records.rows import Mark

BENCH = Path(__file__).parents[2] / "bench"
FIGURES = json.loads((BENCH / "results" / "frameworks.json").read_text())["figures"]
WHY = tomllib.loads((BENCH / "frameworks" / "why.toml").read_text())
NAMES = ["plain", "Lightning", "Accelerate", "HF Trainer", "DDP", "compiled model"]


@pytest.fixture(scope="module")
def runs() -> ModuleType:
    sys.path.insert(0, str(BENCH))
    try:
        return __import__("framework_runs")
    finally:
        sys.path.remove(str(BENCH))


def cells() -> dict[tuple[str, str], dict[str, Any]]:
    return {(id, name): cell for id, row in FIGURES["levers"].items() for name, cell in row.items()}


def test_every_lever_was_run_under_every_framework() -> None:
    missing = set(levers()) - set(FIGURES["levers"])
    again = " ".join(f"--lever {id}" for id in sorted(missing))
    assert not missing, f"run: python bench/frameworks.py --save {again}; then python tools/reference_docs.py"
    assert set(FIGURES["levers"]) == set(levers())
    assert all(set(row) == set(NAMES) for row in FIGURES["levers"].values())
    assert list(FIGURES["versions"]) == NAMES


def test_only_what_found_nothing_has_a_reason_in_the_table_of_reasons() -> None:
    nothing = {key for key, cell in cells().items() if cell["state"] == "no effect"}
    silent = {key for key in nothing if not cells()[key]["why"]}
    told = {(id, name) for id, row in WHY.items() for name in row}
    assert silent <= told, f"without a reason: {silent - told}"
    assert told <= nothing, f"reasons of cells that are not so: {told - nothing}"


def test_a_refusal_or_a_failure_says_why() -> None:
    for key, cell in cells().items():
        assert cell["state"] in ("works", "no effect", "refused", "fails")
        assert cell["why"] or cell["state"] not in ("refused", "fails"), key
        assert not (cell["why"] and cell["state"] == "works"), key


def test_what_works_was_used_and_did_no_harm(runs: ModuleType) -> None:
    known = levers()
    for (id, name), cell in cells().items():
        if cell["state"] == "works":
            assert cell["changes"] > 0 and cell["exit_code"] == 0, (id, name)
            assert cell["losses_equal"] or known[id].PRESERVES != "bits", (id, name)
            assert cell["loss_difference"] <= runs.TOLERANCE[known[id].PRESERVES], (id, name)


def test_the_frameworks_are_those_of_the_table(runs: ModuleType) -> None:
    assert [framework.name for framework in runs.FRAMEWORKS] == NAMES
    assert all((runs.SCRIPTS / framework.script).is_file() for framework in runs.FRAMEWORKS)
    assert len({tuple(framework.command("files")) for framework in runs.FRAMEWORKS}) == len(NAMES), "two are the same"


LOSSES = [(2.0).hex(), (1.0).hex()]


@pytest.mark.parametrize(
    ("preserves", "losses", "marks", "exit_code", "state"),
    [
        ("bits", LOSSES, [("no-effect", 0), ("applied", 3)], 0, "works"),
        ("bits", LOSSES, [("no-effect", 0)], 0, "no effect"),
        ("bits", LOSSES, [("applied", 1), ("failed", 1)], 0, "fails"),
        ("bits", LOSSES, [("applied", 1)], 3, "fails"),
        ("bits", LOSSES, [], 0, "fails"),
        ("bits", [LOSSES[0], (1.0001).hex()], [("applied", 1)], 0, "fails"),
        ("maths", [LOSSES[0], (1.0001).hex()], [("applied", 1)], 0, "works"),
        ("maths", [LOSSES[0], (1.1).hex()], [("applied", 1)], 0, "fails"),
        ("maths", LOSSES[:1], [("applied", 1)], 0, "fails"),
    ],
)
def test_a_run_is_judged_by_its_records_losses_and_exit_code(
    runs: ModuleType, preserves: str, losses: list[str], marks: list[Any], exit_code: int, state: str
) -> None:
    lever = SimpleNamespace(PRESERVES=preserves)
    rows = [[Mark("lever", "x", said, count) for said, count in marks]]
    cell = runs.verdict(lever, {}, runs.Run(0, LOSSES, ""), runs.Run(exit_code, losses, ""), rows)
    assert cell.state == state


def test_a_lever_run_anew_alone_does_not_hide_the_versions_of_the_others(runs: ModuleType) -> None:
    sys.path.insert(0, str(BENCH))
    try:
        told_versions = __import__("frameworks").told_versions
    finally:
        sys.path.remove(str(BENCH))
    rows: dict[str, Any] = {"a": {"HF": {}}, "b": {"HF": {"version": "hf 2"}}, "c": {}}
    assert told_versions({"versions": {"HF": "hf 1"}}, rows, "HF") == "hf 1, hf 2"
    assert told_versions({"versions": {"HF": "hf 1, hf 2"}}, rows, "HF") == "hf 1, hf 2"
    rows["a"]["HF"]["version"] = "hf 2"
    assert told_versions({"versions": {"HF": "hf 1, hf 2"}}, rows, "HF") == "hf 2"
