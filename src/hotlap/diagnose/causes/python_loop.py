"""python-loop: a Python loop of small operations inside the forward."""

from __future__ import annotations

import re

from hotlap.diagnose.stacks import Sampled
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "python-loop"

_LOOP = re.compile(r"^(?:async )?for\b.*\bin\b|^while\b")
_MODULES = re.compile(r"\bin\s+(?:enumerate\(|zip\()?\s*(?:self\.)?\w*(?:layers|blocks|modules|stages|heads|convs)\b")
"""Loops over layers run a module each: fine, unless the calls are many and small."""


def _calls(view: View) -> dict[tuple[str, int], float]:
    """Calls per forward by user's line."""
    calls: dict[tuple[str, int], float] = {}
    for row in view.setting_rows("step_calls"):
        for pair in row.value.get("lines") or []:
            frame = view.timeline.frame.get(int(pair[0])) if len(pair) == 2 else None
            if frame is not None:
                key = (frame.file, frame.line)
                calls[key] = max(calls.get(key, 0.0), float(pair[1]))
    return calls


def find(view: View) -> Finding | None:
    """Forward samples whose blamed line lies in a loop of many short calls."""
    calls = _calls(view)
    forward = view.stacks.phase("forward")
    total = forward.total()
    if not total or not calls:
        return None
    forward_s = view.seconds("forward")
    line_s: dict[tuple[str, int], float] = {}
    for sample in forward.samples:
        if (frame := sample.blamed) is not None:
            key = (frame.file, frame.line)
            line_s[key] = line_s.get(key, 0.0) + forward_s * sample.count / total

    def small_loop(sample: Sampled) -> bool:
        frame = sample.blamed
        if frame is None:
            return False
        header, key = forward.loop(frame), (frame.file, frame.line)
        if not _LOOP.search(header) or _MODULES.search(header):
            return False
        inside = [
            n
            for (file, line), n in calls.items()
            if file == frame.file and forward.loops.get(f"{file}:{line}") == header
        ]
        count = calls.get(key) or max(inside, default=0.0)
        micro = max(1.0, view.times.micro)
        return count >= view.policy.loop_calls and line_s[key] / micro / count <= view.policy.loop_call_s

    book = forward.where(small_loop)
    loop_s = forward_s * book.total() / total
    backward_s = view.seconds("backward") * book.total() / total
    where = book.lines(view.policy.max_where)
    if not where:
        return None
    count = calls.get((where[0].file, where[0].line), view.policy.loop_calls)
    header = forward.loops.get(f"{where[0].file}:{where[0].line}", "").strip()
    evidence = {
        "forward_share": book.total() / total, "calls_per_forward": count, "loop": header, "basis": "prior",
        "prior": view.policy.loop_prior, **view.stack_evidence(book),
    }  # fmt: skip
    return view.finding(
        CAUSE, (loop_s + backward_s) * view.policy.loop_prior,
        f"Replace the loop `{header}` at {where[0].file}:{where[0].line} by one batched operation, or compile it.",
        where, detail=f"{count:.0f} calls per forward", phase="forward", evidence=evidence,
    )  # fmt: skip
