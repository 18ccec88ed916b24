"""The scripts of bench/faults train, and give no hint of their fault; the table beside them says what it is.

A few of them are trained here, all with ``HOTLAP_FAULTS=all``.
"""

from __future__ import annotations

import io
import math
import multiprocessing
import os
import re
import runpy
import sys
import tokenize
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hotlap.lever.registry import levers
from hotlap.records.causes import CAUSES

BENCH = Path(__file__).parents[2] / "bench"
STEPS = 60
HINTS = re.compile(r"\b(slow|fast|faster|wasteful|inefficient|bottleneck|fault|hotlap|should)\b", re.IGNORECASE)


def bench_module(name: str) -> ModuleType:
    sys.path.insert(0, str(BENCH))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(BENCH))


TABLE: list[Any] = bench_module("fault_table").faults()
SLOW = [fault for fault in TABLE if not fault.healthy]
TRAINED = TABLE if os.environ.get("HOTLAP_FAULTS") == "all" else TABLE[::20]
PAIRS = [
    pytest.param(f, path, id=path.stem, marks=[] if path == f.script else pytest.mark.cousin)
    for f in TRAINED
    for path in dict.fromkeys((f.script, f.fixed))
]


def run_here(script: str, folder: str, send: Callable[[Any], None]) -> None:
    """In a process of its own: run the script as ``python script --steps 60`` would, and send what it printed."""
    os.chdir(folder)
    sys.argv = [script, "--steps", str(STEPS)]
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            runpy.run_path(script, run_name="__main__")
    except BaseException as error:
        send(f"{error!r}\n{err.getvalue()}")
        raise
    send(out.getvalue())


def printed(script: Path, folder: Path) -> str:
    """Output of a short run. A server that has torch imported forks the process: torch's import would cost most."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    ours, theirs = context.Pipe()
    process = context.Process(target=run_here, args=(str(script), str(folder), theirs.send))
    process.start()
    theirs.close()
    try:
        text: str = ours.recv()
        process.join(30)
    finally:
        process.kill()
        process.join()
    assert process.exitcode == 0, text
    return text


@pytest.mark.slow
@pytest.mark.timeout(150)
@pytest.mark.parametrize(("fault", "script"), PAIRS)
def test_the_loss_is_finite_and_falls(
    fault: Any, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault.missing:
        pytest.skip(f"{', '.join(fault.missing)} not installed")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    lines = bench_module("fault_runs").STEP.findall(printed(script, tmp_path))
    losses = {int(step): float(loss) for step, loss in reversed(lines)}
    assert set(losses) == {1, 20, 40, 60}
    assert all(math.isfinite(loss) for loss in losses.values())
    assert losses[60] < losses[1]


@pytest.mark.parametrize("fault", SLOW, ids=lambda fault: fault.name)
def test_the_table_points_at_one_line_and_at_known_causes(fault: Any) -> None:
    assert fault.right_lines and fault.fix
    assert set(fault.causes) and set(fault.causes) <= set(CAUSES)
    assert set(fault.levers) <= set(levers())
    assert fault.herring_line not in fault.right_lines
    assert fault.script.read_text() != fault.fixed.read_text()


def test_a_pattern_that_matches_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="not one"):
        SLOW[0].line_of("import")


def test_every_script_is_in_the_table_and_parses() -> None:
    named = {path for fault in TABLE for path in (fault.script, fault.fixed)}
    there = set((BENCH / "faults").glob("*.py"))
    assert there == named
    for path in there:
        compile(path.read_text(), str(path), "exec")


def test_the_suite_is_as_large_and_as_varied_as_it_claims() -> None:
    assert len(SLOW) >= 30
    assert sum(fault.healthy for fault in TABLE) >= 3
    assert sum(bool(fault.herring) for fault in SLOW) >= 5
    assert {"functions", "classes", "config", "lightning", "accelerate", "transformers"} <= {f.style for f in TABLE}
    assert {"images", "audio", "text", "tabular", "detection", "distillation", "gan"} <= {f.domain for f in TABLE}


@pytest.mark.parametrize("fault", TABLE, ids=lambda fault: fault.name)
def test_the_script_gives_no_hint(fault: Any) -> None:
    source = fault.script.read_text()
    comments = [t.string for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type == tokenize.COMMENT]
    assert all(comment.startswith("# fmt:") for comment in comments)
    assert not HINTS.search(source)


@pytest.mark.parametrize(
    ("findings", "marks"),
    [
        ([("decode", "audio_flac.py", "line")], (True, True, False)),
        ([("decode", "other.py", "line")], (True, False, False)),
        ([("gc", "audio_flac.py", "line"), ("decode", "audio_flac.py", "line")], (False, True, False)),
        ([], (False, False, False)),
    ],
)
def test_only_the_first_finding_counts(findings: list[Any], marks: tuple[bool, ...]) -> None:
    fault = next(f for f in SLOW if f.name == "audio_flac")
    rows = [
        {"cause": c, "share": 0.5, "detail": "", "where": [[file, fault.line_of(fault.line), "text"]]}
        for c, file, _ in findings
    ]
    assert bench_module("fault_runs").first_right(fault, rows) == marks


def test_a_red_herring_is_noticed_and_a_healthy_script_is_left_alone() -> None:
    runs = bench_module("fault_runs")
    fault = next(f for f in SLOW if f.herring)
    row = {"cause": "logging-blocking", "share": 0.2, "detail": "", "where": [[fault.script.name, fault.herring_line]]}
    assert runs.first_right(fault, [row]) == (False, False, True)
    assert not runs.left_alone([row])
    assert runs.left_alone([{**row, "share": 0.03}, {**row, "cause": "nothing-to-gain"}])


def test_what_was_measured_while_others_had_the_cores_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    faults_bench = bench_module("faults")
    taken, results = iter([0.3, 0.2, 0.01, 0.3, 0.2]), iter("abcde")
    watch = type("Watch", (), {"stolen": lambda self: next(taken)})
    monkeypatch.setattr(faults_bench, "Watch", watch)
    monkeypatch.setattr(faults_bench, "wait_until_quiet", lambda most: None)
    assert faults_bench.in_quiet("any", SimpleNamespace(tries=3, stolen=0.05), lambda: next(results)) == "c"
    with pytest.raises(faults_bench.Restless):
        faults_bench.in_quiet("any", SimpleNamespace(tries=2, stolen=0.05), lambda: next(results))


def test_rounds_by_hand() -> None:
    found = bench_module("fault_runs").together([(10.0, 20.0), (10.0, 40.0), (20.0, 60.0)])
    assert found["ratios"] == [2.0, 4.0, 3.0] and found["ratio"] == 3.0 and found["slow_steps_per_s"] == [10, 10, 20]
