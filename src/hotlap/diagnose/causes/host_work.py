"""host-work: the script's own Python between the phases."""

from __future__ import annotations

import re

from hotlap.diagnose.host import residual_seconds
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "host-work"

_TENSORS = re.compile(r"\b(?:load_)?state_dict\(|\b(?:named_)?(?:parameters|buffers)\(")


def find(view: View) -> Finding | None:
    """Residual that no other cause explains."""
    seconds, book = residual_seconds(view, "work")
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


def _over_tensors(view: View, where: Where) -> bool:
    """Whether a line, or the loop around it, goes over a module's tensors (a running average, norms, clipping)."""
    header = view.timeline.loops.get(f"{where.file}:{where.line}", "")
    return bool(_TENSORS.search(where.text) or _TENSORS.search(header))
