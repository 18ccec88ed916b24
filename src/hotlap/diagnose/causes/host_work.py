"""host-work: the script's own Python between the phases, and in hooks within them."""

from __future__ import annotations

import re
from collections.abc import Callable

from hotlap.diagnose.drift import find_drift, grown_lines
from hotlap.diagnose.host import residual_seconds, step_functions
from hotlap.diagnose.metric_growth import metric_growth
from hotlap.diagnose.module_hooks import hook_work
from hotlap.diagnose.rebuilt import data_set_anew
from hotlap.diagnose.stacks import Sampled
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "host-work"

_TENSORS = re.compile(r"\b(?:load_)?state_dict\(|\b(?:named_)?(?:parameters|buffers)\(")


def find(view: View) -> Finding | None:
    """Residual that no other cause explains."""
    seconds, every = residual_seconds(view, "work")
    grown, anew = _elsewhere(view), {sample.frames for sample in data_set_anew(view)[1].samples}
    book = every.where(lambda sample: grown(sample) and sample.frames not in anew)
    if every.total():
        seconds *= book.total() / every.total()
    hooks_s, hooks = hook_work(view)
    hooked = hooks_s > seconds
    seconds, book = seconds + hooks_s, hooks if hooked else book
    if view.share(seconds) < view.policy.host_work_share or seconds < view.policy.host_work_min_s:
        return None
    where = book.lines(view.policy.max_where)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {"residual_s": view.seconds("residual"), "hooks_s": hooks_s, **view.stack_evidence(book)}
    detail = "Python between the phases"
    advice = f"Move the work{at} out of the step: do it once, every so many steps, or in another thread."
    if hooked:
        detail = "hooks of modules or tensors"
        advice = f"Let the hook{at} do its work every so many steps only, or take it away."
    elif any(_over_tensors(view, w) for w in where if w.function == where[0].function):
        detail = "the model's tensors one by one"
        advice = f"Treat all tensors{at} in one call (torch._foreach_lerp_ and its kin), or every so many steps."
    phase = "forward" if hooked else "residual"
    return view.finding(CAUSE, seconds, advice, where, detail=detail, phase=phase, evidence=evidence)


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
