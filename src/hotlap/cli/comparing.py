"""What is to be compared: two runs or two plans, found by their names and read."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from pathlib import Path

from hotlap.cli.saved import find_run
from hotlap.compare.plans import compare_plans
from hotlap.compare.runs import compare_runs
from hotlap.compare.side import Side
from hotlap.diagnose.diagnose import diagnose
from hotlap.lap.baseline import script_name
from hotlap.lever.registry import lever
from hotlap.plan.file import load_plan
from hotlap.records.comparison import Comparison, MoveChange, Warned
from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.findings import Findings
from hotlap.records.machine import Machine
from hotlap.records.plan import KNOB, Plan
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import ROOT, RunFolder, list_runs
from hotlap.records.timeline import Timeline, training_timeline
from hotlap.report.saved import JUDGED

__all__ = ["compare", "compare_folders"]

OWN = "run"
"""The folder of the timelines of a run that was watched to its own end."""


@dataclass(frozen=True)
class _Named:
    """What a name stands for: one of both."""

    name: str
    plan: Path | None
    run: RunFolder | None

    @property
    def kind(self) -> str:
        return "a plan" if self.plan is not None else "a run"


def compare(a: str, b: str, root: Path | None) -> Comparison:
    """Compare what ``a`` and ``b`` name. HotlapError where one is neither a run nor a plan, or they are not alike."""
    first, second = _find(a, root), _find(b, root)
    if first.plan is not None and second.plan is not None:
        found = compare_plans((a, load_plan(first.plan)), (b, load_plan(second.plan)))
        return replace(found, warnings=[*found.warnings, *_unknown_levers(found.moves)])
    if first.run is not None and second.run is not None:
        return compare_folders(first.run, second.run)
    raise HotlapError(
        f"{a} is {first.kind} and {b} is {second.kind}: two runs can be compared, or two plans.", _hint(first, second),
        EXIT_USAGE,
    )  # fmt: skip


def compare_folders(a: RunFolder, b: RunFolder) -> Comparison:
    """Compare two runs. HotlapError where one of them has nothing to compare."""
    return compare_runs(_load(a), _load(b))


def _unknown_levers(moves: list[MoveChange]) -> list[Warned]:
    """A plan may be of another Hotlap, or misspelt by hand."""
    found = []
    for move in moves:
        try:
            if not move.lever.startswith(KNOB):
                lever(move.lever)
        except HotlapError as err:
            found.append(Warned("lever", f"{err.what} {err.hint}"))
    return found


def _hint(first: _Named, second: _Named) -> str:
    """The plan that the run ended with, if it has one."""
    run = first.run or second.run
    assert run is not None
    if (run.path / "plan.yaml").is_file():
        return f"The plan of that run is {run.path / 'plan.yaml'}."
    return f"The run {run.path.name} found no plan. To see what a plan does: hotlap run --plan, then compare the runs."


def _find(name: str, root: Path | None) -> _Named:
    path, runs = Path(name), root or Path(ROOT)
    if path.name == "run.json" and path.is_file():
        return _Named(name, None, find_run(str(path.parent), root))
    if path.is_file():
        return _Named(name, path, None)
    if not path.exists() and not (runs / name).exists():
        near = difflib.get_close_matches(name, [run.path.name for run in list_runs(root)], n=1)
        hint = f"Did you mean {near[0]}?" if near else "`hotlap runs` lists the runs."
        raise HotlapError(f"There is no run and no plan called {name!r}; runs are kept in {runs}.", hint, EXIT_USAGE)
    return _Named(name, None, find_run(name, root))


def _load(folder: RunFolder) -> Side:
    run = folder.read("run.json", RunRecord)
    assert run is not None  # a folder without it was not found
    machine = folder.read("machine.json", Machine)
    own = (folder.path / "timelines" / OWN).is_dir()
    timeline = _timeline(folder, own)
    findings = folder.read("findings.json", Findings)
    if findings is None:
        findings = _diagnosed(folder, run, timeline if own else None, machine)
    header = timeline.header if timeline is not None else None
    return Side(
        name=folder.path.name,
        path=str(folder.path),
        run=run,
        machine=machine,
        findings=findings,
        plan=folder.read("plan.json", Plan),
        settings={row.name: row.value for row in timeline.setting} if timeline is not None else {},
        hotlap=header.hotlap if header is not None else None,
        python=header.python if header is not None else None,
        torch=header.torch if header is not None else None,
        folder=header.cwd if header is not None else "",
        in_trial=not own,
        stacks=timeline is None or bool(timeline.hits),
    )


def _timeline(folder: RunFolder, own: bool) -> Timeline | None:
    """The timeline that the findings were made of: the run's own, else the first arm's. None: it is gone."""
    root = folder.path / "timelines"
    if own:
        return training_timeline(root / OWN)
    arms = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return training_timeline(arms[0]) if arms else None


def _diagnosed(folder: RunFolder, run: RunRecord, timeline: Timeline | None, machine: Machine | None) -> Findings:
    """The findings of a run that made none itself (``hotlap run``, or one that was cut off)."""
    name = folder.path.name
    if run.kind in JUDGED:
        what = (
            f"The run {name} is of `hotlap {run.kind}`, which compares two arms itself: nothing to set beside others."
        )
        raise HotlapError(what, f"`hotlap report {name}` shows what it found.", EXIT_USAGE)
    if timeline is None:
        raise HotlapError(
            f"The run {name} ({run.kind}, {run.status}) has nothing to compare: no training step was recorded.",
            f"Its folder is {folder.path}.",
        )
    if machine is None:
        raise HotlapError(
            f"The run {name} has no findings, and no machine.json to make them with.",
            "It was cut off, or made by an older Hotlap: run it again.",
        )
    try:
        return diagnose(timeline, machine, script_name(run.command))
    except HotlapError as err:
        raise HotlapError(f"The run {name} cannot be compared: {err.what}", err.hint, err.exit_code) from err
