"""How one run stands: its documents as far as they exist, and while it goes on its timeline's last seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from hotlap.guard.earlier import look_back
from hotlap.guard.status import Earlier, Status, read_status
from hotlap.records.errors import RecordError
from hotlap.records.findings import Findings
from hotlap.records.guard import Alarm, GuardRecord
from hotlap.records.run import RunRecord
from hotlap.records.run_folder import RunFolder
from hotlap.records.trials import LeverResult
from hotlap.ui.glimpse import Glimpse, trained
from hotlap.ui.line import DOCUMENTS, Line, Lines, reason, silent_s
from hotlap.ui.shelf import check_folder, signature

__all__ = ["RunState", "States"]

WATCHED = "run"
"""The folder of the timelines of a run that was watched to its own end."""
RESULTS = (*DOCUMENTS, "levers.json", "plan.yaml", "report.html", "check.json", "machine.json")
LONGEST_KNOWN = 64
"""Runs whose past is remembered."""
T = TypeVar("T")


@dataclass(frozen=True)
class RunState:
    """One run now. None: the run did not get there."""

    run: RunRecord
    status: Status
    glimpse: Glimpse | None
    findings: Findings | None
    levers: list[LeverResult]
    alarms: list[Alarm]
    line: Line
    """The run in short."""
    silent_s: float | None
    """A run that says it goes on, but has long written nothing."""
    results: str
    """Changes when a document of the run does."""
    problems: list[str]
    """What of it cannot be read, and why."""

    @property
    def ended(self) -> bool:
        """Whether nothing will come any more."""
        return self.run.status != "running"


class States:
    """Reads runs; what earlier runs of the same command knew is looked up once for each."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._earlier: dict[str, tuple[tuple[tuple[int, int], ...], Earlier]] = {}

    def read(self, folder: RunFolder) -> RunState:
        """Raises an error when there is no run to speak of; what else is wrong is told in the state."""
        check_folder(folder.path)
        run = folder.read("run.json", RunRecord)
        if run is None:
            raise RecordError(f"{folder.path.name} has no run.json any more.", "Was the folder removed?")
        problems: list[str] = []
        findings = _document(folder, "findings.json", Findings, problems)
        levers: list[LeverResult] = _document(folder, "levers.json", list[LeverResult], problems) or []
        guard = _document(folder, "guard.json", GuardRecord, problems)
        alarms = guard.alarms if guard is not None else []
        glimpse = self._glimpse(folder, problems)
        return RunState(
            run=run,
            status=self._status(folder, run, glimpse, guard),
            glimpse=glimpse,
            findings=findings,
            levers=levers,
            alarms=alarms,
            line=self._lines.line(folder),
            silent_s=silent_s(folder.path, run.status),
            results="-".join(f"{size}.{at}" for size, at in signature(folder.path, RESULTS)),
            problems=problems,
        )

    def _glimpse(self, folder: RunFolder, problems: list[str]) -> Glimpse | None:
        timelines = folder.path / "timelines" / WATCHED
        if not timelines.is_dir():
            return None
        try:
            return trained(timelines)
        except Exception as err:  # a timeline that is torn in the middle: the documents are shown all the same
            problems.append(reason(err))
            return None

    def _status(self, folder: RunFolder, run: RunRecord, glimpse: Glimpse | None, guard: GuardRecord | None) -> Status:
        if glimpse is None:
            return Status()
        current, drifts = (guard.current, len(guard.alarms)) if guard is not None else (None, 0)
        status = read_status(glimpse.recent, 0, self._known(folder, run), current, drifts)
        return replace(status, train_s=glimpse.train_s)

    def _known(self, folder: RunFolder, run: RunRecord) -> Earlier:
        name, machine = folder.path.name, signature(folder.path, ("machine.json",))  # whose roof it may be
        known = self._earlier.get(name)
        if known is None or known[0] != machine:
            if len(self._earlier) >= LONGEST_KNOWN:
                self._earlier.clear()
            known = machine, look_back(run.command, folder.path.parent, folder, _check, run.total_steps)
            self._earlier[name] = known
        return known[1]


def _check(folder: RunFolder) -> None:
    """As for a run that is listed: none whose folder is a link, and no document that could not be one."""
    if folder.path.is_symlink():
        raise RecordError(f"{folder.path.name} is a link, and links are not followed.")
    check_folder(folder.path, deep=False)


def _document(folder: RunFolder, name: str, cls: type[T], problems: list[str]) -> T | None:
    try:
        return folder.read(name, cls)
    except Exception as err:  # one document that cannot be read hides no other
        problems.append(reason(err))
        return None
