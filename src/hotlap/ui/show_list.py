"""The list of runs: newest first, one row each, in words."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.report import units
from hotlap.report.keep import command_text
from hotlap.report.run_words import status_line
from hotlap.report.view import Report
from hotlap.ui.line import Line

__all__ = ["MOST_ROWS", "PROVED", "Row", "matching", "newest_first", "row", "script_title", "status_css"]

PROVED = "proved"
MOST_ROWS = 400
"""Rows of one page; the filter looks in all runs."""


@dataclass(frozen=True)
class Row:
    """What is shown of one run. Empty: not measured."""

    name: str
    script: str
    started: str
    kind: str
    status: str
    css: str
    per_s: str
    unit: str
    roof: str
    speedup: str
    command: str
    problem: str

    @property
    def text(self) -> str:
        """What the filter looks in, here and in the browser."""
        return " ".join((self.name, self.kind, self.status, self.started, self.command)).lower()


def newest_first(lines: list[Line]) -> list[Line]:
    """By the time that the run says it started, else by its name, which begins with a time."""
    return sorted(lines, key=lambda line: (_digits(line.started or line.name), line.name), reverse=True)


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isascii() and c.isdigit())[:14]


def matching(rows: list[Row], words: str) -> list[Row]:
    """Those that have every word in their name, command, kind or status."""
    wanted = words.lower().split()
    return [row for row in rows if all(word in row.text for word in wanted)]


def script_title(command: list[str]) -> str:
    """What the script is called."""
    return Report(command=command).script


def status_css(status: str, exit_code: int | None, silent_s: float | None, verdict: str = "") -> str:
    """The class that colours a status."""
    if status == "running" and silent_s is None:
        return "now"
    if status == "finished":
        return "warn" if exit_code or verdict not in ("", PROVED) else "good"
    return "warn" if status in ("running", "interrupted") else "bad"


def row(line: Line, silent_s: float | None) -> Row:
    """A run's row."""
    per_s = line.samples_per_s if line.samples_per_s is not None else line.steps_per_s
    speedup = line.speedup
    return Row(
        name=line.name,
        script=script_title(list(line.command)) if line.command else line.name,
        started=line.started,
        kind=line.kind,
        status=status_line(line.status, line.exit_code, silent_s, line.drifts, line.verdict),
        css=status_css(line.status, line.exit_code, silent_s, line.verdict),
        per_s=units.per_s(per_s) if per_s is not None else "",
        unit="samples/s" if line.samples_per_s is not None else "steps/s",
        roof=units.share(line.roof_share) if line.roof_share is not None else "",
        speedup=units.ratio_interval(speedup.ratio, speedup.low, speedup.high) if speedup is not None else "",
        command=command_text(list(line.command)),
        problem=line.problem,
    )
