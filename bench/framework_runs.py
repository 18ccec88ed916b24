"""One lever alone under one framework: `hotlap run --plan` beside the bare run, and what the records say of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotlap.lever.contract import Lever, Refusal
from hotlap.records.codec import loads
from hotlap.records.findings import Finding, Findings
from hotlap.records.machine import Machine
from hotlap.records.rows import Mark
from hotlap.records.run_folder import list_runs
from hotlap.records.timeline import training_timeline

__all__ = ["FRAMEWORKS", "SCRIPTS", "TOLERANCE", "Cell", "Framework", "Run", "judge", "verdict"]

SCRIPTS = Path(__file__).resolve().parent / "frameworks"
LOSS = re.compile(r"^step \d+ loss (\S+)$", re.MULTILINE)
DATA = {"batched-fetch": "tensors", "trim-padding": "padded"}
"""Levers that treat data of another kind than the array files."""
TOLERANCE = {"bits": 0.0, "maths": 0.02, "distribution": 0.1}
"""Relative difference of the mean loss from the bare run's, by what a lever preserves. For bits every loss is equal."""


@dataclass(frozen=True)
class Cell:
    """What became of a lever: ``works``, ``no effect``, ``refused`` or ``fails``, and why."""

    state: str
    why: str = ""
    setting: dict[str, Any] | None = None
    changes: int | None = None
    exit_code: int | None = None
    losses_equal: bool | None = None
    loss_difference: float | None = None
    """Relative, of the mean over all steps."""


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    exit_code: int
    losses: list[str]
    stderr: str


@dataclass
class Framework:
    """A way of writing a training, its command, and its bare runs as far as they were made."""

    name: str
    script: str
    package: str = "torch"
    launcher: tuple[str, ...] = (sys.executable,)
    options: tuple[str, ...] = ()
    bare: dict[str, Run] = field(default_factory=dict)
    findings: dict[str, Findings] = field(default_factory=dict)

    def command(self, data: str) -> list[str]:
        """Its command line."""
        return [*self.launcher, str(SCRIPTS / self.script), "--data", data, *self.options]


_TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
FRAMEWORKS = (
    Framework("plain", "plain.py"),
    Framework("Lightning", "lightning_trainer.py", "lightning"),
    Framework("Accelerate", "accelerate_loop.py", "accelerate"),
    Framework("HF Trainer", "hf_trainer.py", "transformers"),
    Framework("DDP", "ddp.py", launcher=_TORCHRUN),
    Framework("compiled model", "plain.py", options=("--compile",)),
)


def judge(lever: Lever, framework: Framework, machine: Machine, home: Path) -> Cell:
    """Ask the lever for its setting here, run with it alone, and set the run against the bare one."""
    data = DATA.get(lever.ID, "files")
    if data not in framework.bare:
        framework.bare[data] = _bare(framework, data, home)
        framework.findings[data] = _findings(framework, data, home)
    findings = framework.findings[data]
    finding = lever.evidence(findings) or Finding(lever.TREATS[0], 0.5, findings.throughput.step_s / 2, False, [], "")
    offered = lever.settings(finding, findings, machine)
    if isinstance(offered, Refusal):
        return Cell("refused", "a person has to do it" if getattr(lever, "ADVICE", False) else offered.reason)
    return _with(lever, offered[0], framework, data, home)


def _with(lever: Lever, setting: dict[str, Any], framework: Framework, data: str, home: Path) -> Cell:
    cwd = _folder(home)
    plan = cwd / "one.yaml"
    move = {"lever": lever.ID, "setting": setting, "preserves": lever.PRESERVES}
    plan.write_text(json.dumps({"schema": "hotlap.plan/1", "moves": [move]}))  # JSON is YAML
    hotlap = [sys.executable, "-m", "hotlap", "run", "--plan", str(plan), "--runs", str(cwd / "runs"), "--"]
    run = _run([*hotlap, *framework.command(data)], cwd)
    runs = list_runs(cwd / "runs")
    if not runs:
        return Cell("refused", run.stderr.strip(), setting, exit_code=run.exit_code)
    timeline = training_timeline(runs[0].path / "timelines" / "run")
    ranks = [] if timeline is None else [timeline, *timeline.ranks]
    marks = [[mark for mark in rank.mark if mark.id == lever.ID] for rank in ranks]
    return verdict(lever, setting, framework.bare[data], run, marks)


def verdict(lever: Lever, setting: dict[str, Any], bare: Run, run: Run, marks: list[list[Mark]]) -> Cell:
    """Set a run with the lever against the bare one. ``marks``: what the lever said in each rank, in order."""
    difference = _difference(bare.losses, run.losses)
    last = [rank[-1] for rank in marks if rank]

    def cell(state: str, why: str = "") -> Cell:
        changes = sum(mark.count for mark in last)
        return Cell(state, why, setting, changes, run.exit_code, run.losses == bare.losses, difference)

    failed = [mark for rank in marks for mark in rank if mark.state == "failed"]
    if failed:
        return cell("fails", failed[0].why or "undone")
    if run.exit_code != bare.exit_code:
        return cell("fails", f"exit code {run.exit_code}: {run.stderr.strip()[-300:]}")
    if not last:
        return cell("fails", f"no record of the lever: {run.stderr.strip()[-300:]}")
    same = run.losses == bare.losses if lever.PRESERVES == "bits" else difference is not None
    if not same or (difference or 0.0) > TOLERANCE[lever.PRESERVES]:
        return cell("fails", "the losses differ by more than the lever may change them")
    if any(mark.state == "applied" for mark in last):
        return cell("works")
    return cell("no effect", last[0].why)


def _difference(bare: list[str], run: list[str]) -> float | None:
    """Relative difference of the mean loss; None where the runs took unequal numbers of steps."""
    if not bare or len(bare) != len(run):
        return None
    one, other = (sum(map(float.fromhex, losses)) / len(losses) for losses in (bare, run))
    return abs(other - one) / abs(one)


def _bare(framework: Framework, data: str, home: Path) -> Run:
    run = _run(framework.command(data), _folder(home))
    if run.exit_code or not run.losses:
        raise RuntimeError(f"{framework.name} alone ended with {run.exit_code}: {run.stderr[-2000:]}")
    again = _run(framework.command(data), _folder(home))
    if again.losses != run.losses:
        raise RuntimeError(f"{framework.name} alone does not repeat its own losses")
    return run


def _findings(framework: Framework, data: str, home: Path) -> Findings:
    cwd = _folder(home)
    hotlap = [sys.executable, "-m", "hotlap", "diagnose", "--no-confirm", "--runs", str(cwd / "runs"), "--"]
    run = _run([*hotlap, *framework.command(data)], cwd)
    path = list_runs(cwd / "runs")[0].path / "findings.json"
    if not path.exists():
        raise RuntimeError(f"{framework.name} was not diagnosed: {run.stderr[-2000:]}")
    return loads(Findings, path.read_text(), str(path))


def _folder(home: Path) -> Path:
    """A fresh working folder that shares the data."""
    cwd = home / f"{time.monotonic_ns()}"
    cwd.mkdir()
    (cwd / "data").symlink_to(home / "data")
    return cwd


def _run(command: list[str], cwd: Path) -> Run:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300)
    for made in cwd.iterdir():
        if made.is_dir() and not made.is_symlink() and made.name != "runs":
            shutil.rmtree(made)
    return Run(done.returncode, LOSS.findall(done.stdout), done.stderr)
