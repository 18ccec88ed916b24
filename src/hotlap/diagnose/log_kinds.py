"""Logging, by what makes it dear: forced out line by line, heavy (histograms, figures), or merely much.

Calls that the probes timed are told apart by operation and line; writes that only the stacks show in the residual, by
the text of the user's lines. Every second of logging belongs to exactly one kind.
"""

from __future__ import annotations

import re

from hotlap.diagnose.host import residual_seconds
from hotlap.diagnose.kinds import draws
from hotlap.diagnose.sites import Calls, calls, collect_calls
from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.diagnose.view import View
from hotlap.records.findings import Where

__all__ = ["KINDS", "Logged", "logged"]

KINDS = ("forced", "heavy", "plain")

_FORCED_OP = re.compile(r"fsync|\.flush$")
_FORCED_TEXT = re.compile(
    r"flush\s*=\s*True|\.flush\(|\bfsync\(|\bopen\([^)]*['\"][aw]\+?[bt]?['\"]|buffering\s*=\s*[01]\b|\.commit\("
)
_HEAVY_OP = re.compile(r"\.add_(?:histogram|images?|figure|video|audio|mesh|pr_curve|embedding|graph)|savefig$")
_HEAVY_TEXT = re.compile(
    r"\.add_(?:histogram|images?|figure|video|audio|mesh|pr_curve|embedding)\(|wandb\.(?:Histogram|Image|Video|Table)\("
    r"|\.log_(?:histogram|image|figure)|savefig\(|\.watch\("
    r"|imsave\(|imwrite\(|save_image\("
)


def _kind(op: str, texts: list[str]) -> str:
    if _FORCED_OP.search(op):
        return "forced"
    if _HEAVY_OP.search(op) or any(_HEAVY_TEXT.search(text) for text in texts):
        return "heavy"
    return "forced" if any(_FORCED_TEXT.search(text) for text in texts) else "plain"


def _kind_of(book: StackBook, sample: Sampled) -> str:
    return "heavy" if draws(sample) else _kind("", book.user_texts(sample))


class Logged:
    """One kind's part of the logging."""

    def __init__(self, phase_s: float, residual_s: float, timed: Calls, book: StackBook, where: list[Where]) -> None:
        self.phase_s = phase_s
        """Seconds per step of the logging phase."""
        self.residual_s = residual_s
        """Seconds per step that the stacks show in the residual."""
        self.timed = timed
        self.book = book
        self.where = where

    @property
    def seconds(self) -> float:
        """Per step."""
        return self.phase_s + self.residual_s

    @property
    def phase(self) -> str:
        """The phase that holds most of it."""
        return "logging" if self.phase_s >= self.residual_s else "residual"

    @property
    def at(self) -> str:
        """`` at train.py:12``, or nothing."""
        return f" at {self.where[0].file}:{self.where[0].line}" if self.where else ""


def logged(view: View, kind: str) -> Logged:
    """The part of the logging that is of ``kind`` (one of KINDS)."""

    def text(frame: int) -> list[str]:
        found = view.timeline.frame.get(frame)
        return [view.stacks.text(found)] if found is not None else []

    sites = calls(view, "logging")
    of_kind = [site for site in sites if _kind(site.op, text(site.frame)) == kind]
    total, mine = sum(site.w for site in sites), sum(site.w for site in of_kind)
    in_phase = view.stacks.phase("logging")
    stacked = in_phase.where(lambda sample: _kind_of(in_phase, sample) == kind)
    if total:
        phase_s = view.seconds("logging") * mine / total
    elif in_phase.total():
        phase_s = view.seconds("logging") * stacked.total() / in_phase.total()
    else:
        phase_s = view.seconds("logging") if kind == "plain" else 0.0
    residual_s, book = residual_seconds(view, "logging")
    samples = book.total()
    part = book.where(lambda sample: _kind_of(book, sample) == kind)
    residual_s = residual_s * part.total() / samples if samples else 0.0
    timed = collect_calls(view, of_kind)
    lines = timed.where or stacked.lines(view.policy.max_where)
    if not lines and phase_s:
        lines = view.event_where("logging")
    others = part.lines(view.policy.max_where)
    where = others + lines if residual_s > phase_s else lines + others
    return Logged(phase_s, residual_s, timed, part, where[: view.policy.max_where])
