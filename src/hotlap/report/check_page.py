"""The page of a check: the verdict, what was allowed, every window of both; one self-contained HTML file."""

from __future__ import annotations

from hotlap import __version__
from hotlap.records.check import Check
from hotlap.report import chart_proof, check_words, keep, units, words
from hotlap.report.page import environment
from hotlap.report.view import Report

__all__ = ["render"]


def render(report: Report) -> str:
    """The whole page of ``report.check``; without one it says how far the run got."""
    found = report.check
    template = environment().get_template("check.html")
    return template.render(
        report=report,
        found=found,
        version=__version__,
        words=words,
        lines=check_words.lines(found) if found is not None else [],
        interval=chart_proof.interval(found.trial.interval, 1.0 - found.max_slowdown_frac) if found else None,
        windows=chart_proof.windows([found.trial]) if found is not None else None,
        setup_facts=_facts(report, found) if found is not None else [],
    )


def _changed(found: Check) -> str:
    if found.changed is None:
        return "of which git does not say what changed"
    return f"{units.count(found.changed)} tracked files changed"


def _facts(report: Report, found: Check) -> list[tuple[str, str]]:
    interval, machine = found.trial.interval, found.machine
    over = f"{units.share(interval.level)} over {units.count(interval.launches)} launches" if interval else ""
    dropped = sum(1 for window in found.trial.windows if window.dropped)
    rows = [
        ("Command", keep.command_text(found.command)),
        ("Baseline", f"{found.against} ({found.commit[:12]}), checked out in its sandbox"),
        ("Candidate", f"the working tree, {_changed(found)}"),
        ("Plan", ", ".join(move.lever for move in found.plan.moves) + ", in both" if found.plan else ""),
        ("Slowdown allowed", units.share(found.max_slowdown_frac)),
        ("Seen half of the time", units.share(found.seen_from_frac)),
        ("Interval", over),
        ("Windows", f"{units.count(len(found.trial.windows))}, {units.count(dropped)} of them dropped"),
        ("System", machine.system),
        ("CPU", f"{machine.cpu}, {units.count(machine.cores)} cores"),
        *(("Accelerator", a.name) for a in machine.accelerators),
        ("Python, torch", f"{machine.python}, {machine.torch or 'no torch'}"),
        ("Made", found.created),
        ("Run folder", report.run_path),
    ]
    return [(name, value) for name, value in rows if value]
