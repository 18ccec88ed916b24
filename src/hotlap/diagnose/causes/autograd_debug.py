"""autograd-debug: anomaly detection or a profiler was left on."""

from __future__ import annotations

from hotlap.diagnose.profiling import profiling
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "autograd-debug"

_NAMES = {"anomaly": "anomaly detection", "profiler": "the profiler"}


def find(view: View) -> Finding | None:
    """What the script switched on, at its prior cost: it can be measured by switching it off alone.

    A profiler also costs what it takes between the phases. Stacks tell that, and that it is on where it rested at every
    look; one that was seen to record, and then to have stopped, is not on.
    """
    latest, policy = view.setting("debug"), view.policy
    told = profiling(view)
    at_rest = told.book.total() > 0 and not any(row.value.get("profiler") for row in view.setting_rows("debug"))
    on = [key for key in _NAMES if latest.get(key) or (key == "profiler" and at_rest)]
    if not on:
        return None
    told_s = told.gathered_s + told.collected_s if "profiler" in on else 0.0
    lines = told.book.lines(policy.max_where) if "profiler" in on else []
    frac = float(latest.get("profiler_frac", 1.0)) if latest.get("profiler") else 0.0
    prior = (policy.autograd_debug_prior if "anomaly" in on else 0.0) + policy.profiler_prior * frac
    rows = [row for row in view.setting_rows("debug") if any(row.value.get(key) for key in on)]
    where = view.setting_where(rows[-1]) if rows else []
    option = view.option_where(CAUSE) if "anomaly" in on else []
    where = (option + where + lines)[: policy.max_where]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    what = " and ".join(_NAMES[key] for key in on)
    compute_s = view.compute_s * prior
    evidence = {
        **{key: key in on for key in _NAMES}, "profiler_frac": frac, "gathered_s": told.gathered_s,
        "collected_s": told.collected_s, "compute_s": view.compute_s, "basis": "prior", "prior": prior,
        **view.stack_evidence(told.book),
    }  # fmt: skip
    phase = "residual" if told_s > compute_s else "backward"
    return view.finding(
        CAUSE, compute_s + told_s, f"Switch off {what}{at}.", where, detail=what, phase=phase, evidence=evidence
    )
