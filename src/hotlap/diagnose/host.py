"""The residual, shared out by stacks: an iterator waited for, logging, saving, profiling, a framework's
overhead, and the script's work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hotlap.diagnose.kinds import is_checkpoint, is_logging, is_next, is_profiler, is_torch
from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.diagnose.trainers import is_framework
from hotlap.diagnose.view import View

__all__ = ["residual_kind", "residual_seconds", "step_functions"]

_IN_STEP = ("forward", "backward", "optimizer", "zero_grad")
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_FEW_TEXT = re.compile(r"\bin\s+(?:range\(\d\)|[\[({][^\])}]*[\])}]):")
"""A loop of a few turns, written out: over scales, or a model's heads."""


@dataclass(frozen=True)
class _Stepping:
    """Where the script runs its steps."""

    begins: Mapping[tuple[str, str], int]
    """The first line, by file and function of the user's."""
    loops: frozenset[tuple[str, str, str]]
    """Headers of the loops that run steps, or parts of one: (file, function, text)."""
    has_loader: bool


def residual_kind(book: StackBook, sample: Sampled, stepping: _Stepping) -> str:
    """``profiler``, ``checkpoint``, ``logging``, ``iterator``, ``framework``, ``compute`` or ``work``: one each.

    The profiler comes first: what a handler of the script's writes when a trace is ready is no log of the training.
    What a library's trainer does around the steps is not the script's to move elsewhere.
    """
    if is_profiler(sample):
        return "profiler"
    if is_checkpoint(book, sample):
        return "checkpoint"
    if is_logging(book, sample):
        return "logging"
    if not stepping.has_loader and is_next(book, sample, stepping.begins):
        return "iterator"
    if is_framework(book, sample):
        return "framework"
    return "compute" if is_torch(sample) and not _loops_within(book, sample, stepping) else "work"


def _loops_within(book: StackBook, sample: Sampled, stepping: _Stepping) -> bool:
    """Whether the blamed line lies in a loop of its own within a step: torch is called over and over there."""
    blamed = sample.blamed
    if blamed is None or not stepping.begins:
        return False
    if blamed.func in _COMPREHENSIONS:
        return (blamed.file, blamed.func) not in stepping.begins
    header = book.loop(blamed)
    if not header or _FEW_TEXT.search(header):
        return False
    return (blamed.file, blamed.func, header) not in stepping.loops


def residual_seconds(view: View, kind: str) -> tuple[float, StackBook]:
    """Seconds per step of that part of the residual, and its samples. Without any sample all of it is work."""
    book = view.stacks.phase("residual")
    total = book.total()
    residual_s = view.seconds("residual")
    if not total:
        return (residual_s if kind == "work" else 0.0), book
    stepping = _Stepping(_begins(view.stacks), _step_loops(view.stacks), view.loader is not None)
    part = book.where(lambda sample: residual_kind(book, sample, stepping) == kind)
    return residual_s * part.total() / total, part


def step_functions(view: View) -> set[tuple[str, str]]:
    """(file, function) of the user's functions that run the step, or a part of it."""
    return set(_begins(view.stacks))


def _begins(stacks: StackBook) -> dict[tuple[str, str], int]:
    """The first line of the step, by file and function, in the user's functions that run it."""
    first: dict[tuple[str, str], int] = {}
    for sample in stacks.phase(*_IN_STEP).samples:
        for frame in sample.user:
            key = (frame.file, frame.func)
            first[key] = min(frame.line, first.get(key, frame.line))
    return first


def _step_loops(stacks: StackBook) -> frozenset[tuple[str, str, str]]:
    """The loops around the lines that run steps, or wait for a batch."""
    samples = stacks.phase(*_IN_STEP, "data_wait").samples
    frames = {(f.file, f.func, f.line): f for sample in samples for f in sample.user}.values()
    return frozenset((f.file, f.func, header) for f in frames if (header := stacks.loop(f)))
