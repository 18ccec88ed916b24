"""autograd-debug: anomaly detection or a profiler was left on."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "autograd-debug"


def find(view: View) -> Finding | None:
    """What the script switched on, at its prior cost: it can be measured by switching it off alone."""
    rows = [row for row in view.setting_rows("debug") if row.value.get("anomaly") or row.value.get("profiler")]
    latest = view.setting("debug")
    anomaly, profiler = bool(latest.get("anomaly")), bool(latest.get("profiler"))
    if not (anomaly or profiler):
        return None
    prior = (view.policy.autograd_debug_prior if anomaly else 0.0) + (view.policy.profiler_prior if profiler else 0.0)
    where = view.setting_where(rows[-1])
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    names = [name for name, on in (("anomaly detection", anomaly), ("the profiler", profiler)) if on]
    evidence = {"anomaly": anomaly, "profiler": profiler, "compute_s": view.compute_s, "basis": "prior", "prior": prior}
    return view.finding(
        CAUSE, view.compute_s * prior, f"Switch off {' and '.join(names)}{at}.", where, detail=" and ".join(names),
        phase="backward", evidence=evidence,
    )  # fmt: skip
