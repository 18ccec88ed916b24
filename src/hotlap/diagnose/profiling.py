"""What torch's profiler takes between the phases: gathering its events, what the script has done with a trace that is
ready, and the garbage collections that all those events bring about."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.diagnose.host import residual_seconds
from hotlap.diagnose.sites import calls, collect_calls
from hotlap.diagnose.stacks import StackBook
from hotlap.diagnose.view import View
from hotlap.records.rows import Site

__all__ = ["Profiling", "profiling"]


@dataclass(frozen=True)
class Profiling:
    """Seconds per step, and where."""

    gathered_s: float
    """Of the residual."""
    collected_s: float
    """Of the gc phase: what full collections on the lines that gather come to."""
    collections: list[Site]
    book: StackBook


def profiling(view: View) -> Profiling:
    """By stacks; nothing of all that where none was seen in the profiler."""
    gathered_s, book = residual_seconds(view, "profiler")
    lines = {(frame.file, frame.line) for sample in book.samples if (frame := sample.blamed) is not None}
    full = calls(view, "gc", "full")
    frames = view.timeline.frame
    mine = [site for site in full if (f := frames.get(site.frame)) is not None and (f.file, f.line) in lines]
    by_itself_s = max(0.0, view.seconds("gc") - collect_calls(view, calls(view, "gc", "collect")).seconds)
    total = sum(site.w for site in full)
    return Profiling(gathered_s, by_itself_s * sum(site.w for site in mine) / total if total else 0.0, mine, book)
