"""python-loop: a Python loop of small operations inside the forward, or around forwards."""

from __future__ import annotations

import re
from collections.abc import Callable

from hotlap.diagnose.rounds import Line, counted_lines
from hotlap.diagnose.stacks import Sampled, StackBook
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding
from hotlap.records.rows import Frame

CAUSE = "python-loop"

_LOOP = re.compile(r"^(?:async )?for\b.*\bin\b|^while\b")
_MODULES = re.compile(r"\bin\s+(?:enumerate\(|zip\()?\s*(?:self\.)?\w*(?:layers|blocks|modules|stages)\b")
"""Loops over layers run a module each, one after the other."""


def _line(frame: Frame) -> Line:
    return frame.file, frame.line


def _seconds(view: View, book: StackBook, frames: Callable[[Sampled], set[Line]]) -> dict[Line, float]:
    """Seconds per forward by line: each sample counts for the lines that ``frames`` gives."""
    each_s = view.seconds("forward") / max(1.0, view.times.micro) / max(1, book.total())
    line_s: dict[Line, float] = {}
    for sample in book.samples:
        for line in frames(sample):
            line_s[line] = line_s.get(line, 0.0) + each_s * sample.count
    return line_s


def find(view: View) -> Finding | None:
    """Forward samples with a user's line in a loop of many short rounds: the innermost such line is to blame."""
    counted = counted_lines(view)
    forward = view.stacks.phase("forward")
    total = forward.total()
    if not total or not counted:
        return None
    own_s = _seconds(view, forward, lambda sample: {_line(sample.blamed)} if sample.blamed is not None else set())
    under_s = _seconds(view, forward, lambda sample: {_line(frame) for frame in sample.user})

    def rounds(frame: Frame) -> float:
        """Of the line; of its loop, where the line is the loop's own or was not counted."""
        known, header = counted.get(_line(frame)), forward.loop(frame)
        if known is not None and forward.text(frame) != header:
            return known.rounds
        return max(
            (c.rounds for (file, line), c in counted.items()
             if file == frame.file and c.function == frame.func and forward.loops.get(f"{file}:{line}") == header),
            default=0.0,
        )  # fmt: skip

    def looping(sample: Sampled) -> Frame | None:
        inner = sample.blamed
        for frame in reversed(sample.user):
            header, n = forward.loop(frame), rounds(frame)
            if inner is None or not _LOOP.search(header) or _MODULES.search(header):
                continue
            known, own = counted.get(_line(frame)), counted.get(_line(inner))
            if max(n, known.calls if known and n >= view.policy.loop_rounds else 0.0) < view.policy.loop_calls:
                continue
            calls = max(n, known.calls if known else 0.0)
            small = own_s[_line(inner)] / max(calls, own.calls if own else 0.0) <= view.policy.loop_call_s
            if small and (frame is inner or under_s[_line(frame)] / calls <= view.policy.loop_round_s):
                return frame
        return None

    book = forward.where(lambda sample: looping(sample) is not None)
    where = book.lines(view.policy.max_where, looping)
    if not where:
        return None
    share = book.total() / total
    seconds = (view.seconds("forward") + view.seconds("backward")) * share
    first = next(f for s in book.samples if (f := looping(s)) and _line(f) == (where[0].file, where[0].line))
    header, count = forward.loop(first), rounds(first)
    evidence = {
        "forward_share": share, "calls_per_forward": count, "loop": header, "basis": "prior",
        "prior": view.policy.loop_prior, **view.stack_evidence(book),
    }  # fmt: skip
    return view.finding(
        CAUSE, seconds * view.policy.loop_prior,
        f"Replace the loop `{header}` at {where[0].file}:{where[0].line} by one batched operation, or compile it.",
        where, detail=f"{count:.0f} rounds per forward", phase="forward", evidence=evidence,
    )  # fmt: skip
