"""host-work: the script's own Python between the phases."""

from __future__ import annotations

import re
from collections.abc import Callable

from hotlap.diagnose.drift import find_drift, grown_lines
from hotlap.diagnose.host import residual_seconds, step_functions
from hotlap.diagnose.metric_growth import metric_growth
from hotlap.diagnose.stacks import Sampled
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "host-work"

_TENSORS = re.compile(r"\b(?:load_)?state_dict\(|\b(?:named_)?(?:parameters|buffers)\(")


def find(view: View) -> Finding | None:
    """Residual that no other cause explains."""
    seconds, every = residual_seconds(view, "work")
    book = every.where(_elsewhere(view))
    if every.total():
        seconds *= book.total() / every.total()
    if view.share(seconds) < view.policy.host_work_share or seconds < view.policy.host_work_min_s:
        return None
    where = book.lines(view.policy.max_where)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {"residual_s": view.seconds("residual"), **view.stack_evidence(book)}
    detail = "Python between the phases"
    advice = f"Move the work{at} out of the step: do it once, every so many steps, or in another thread."
    if any(_over_tensors(view, w) for w in where if w.function == where[0].function):
        detail = "the model's tensors one by one"
        advice = f"Treat all tensors{at} in one call (torch._foreach_lerp_ and its kin), or every so many steps."
    return view.finding(CAUSE, seconds, advice, where, detail=detail, phase="residual", evidence=evidence)


def _elsewhere(view: View) -> Callable[[Sampled], bool]:
    """Whether a sample lies outside what grows from step to step: that is a cause of its own, with all its function.

    Of the function that runs the step it is the lines alone.
    """
    drift = find_drift(view)
    if drift is None or not drift.growing:
        return lambda sample: True
    found = metric_growth(view)
    grown = found[1] if found else [g.where for g in grown_lines(view, drift.phase)[: view.policy.max_where]]
    stepping = step_functions(view)
    lines = {(w.file, w.line) for w in grown}
    functions = {(w.file, w.function) for w in grown} - stepping
    return lambda sample: not any((f.file, f.line) in lines or (f.file, f.func) in functions for f in sample.user)


def _over_tensors(view: View, where: Where) -> bool:
    """Whether a line, or the loop around it, goes over a module's tensors (a running average, norms, clipping)."""
    header = view.timeline.loops.get(f"{where.file}:{where.line}", "")
    return bool(_TENSORS.search(where.text) or _TENSORS.search(header))
