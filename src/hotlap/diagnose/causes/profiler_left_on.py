"""profiler-left-on: a profiler or tracer of the interpreter runs while the script trains."""

from __future__ import annotations

from hotlap.diagnose.profiling import profiling
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "profiler-left-on"

_SWITCHES = {
    "profile": "sys.setprofile", "trace": "sys.settrace", "monitoring": "sys.monitoring", "tracemalloc": "tracemalloc",
}  # fmt: skip


def find(view: View) -> Finding | None:
    """What is on, at its prior cost: it slows Python down, and leaves compute alone.

    What torch's profiler takes between the phases is autograd-debug's.
    """
    on = view.setting("tracing")
    names = [
        f"{on[key]} ({how})" if isinstance(on.get(key), str) else how for key, how in _SWITCHES.items() if on.get(key)
    ]
    if not names:
        return None
    times = view.times
    told = profiling(view)
    other_s = view.compute_s * view.compute_bound + view.seconds("sync") + told.gathered_s + told.collected_s
    python_s = max(0.0, times.step_s - other_s)
    where = next((found for row in reversed(view.setting_rows("tracing")) if (found := view.setting_where(row))), [])
    where = where or view.option_where(CAUSE)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    prior = view.policy.tracing_prior
    evidence = {"on": names, "python_s": python_s, "basis": "prior", "prior": prior}
    return view.finding(
        CAUSE, python_s * prior, f"Train without {' and '.join(names)}{at}, or trace a few steps only.", where,
        detail=" and ".join(names), phase="residual", evidence=evidence,
    )  # fmt: skip
