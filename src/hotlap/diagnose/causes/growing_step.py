"""growing-step: steps get slower as the run goes on."""

from __future__ import annotations

from hotlap.diagnose.alike import grew_alike
from hotlap.diagnose.drift import find_drift, grown_lines
from hotlap.diagnose.kept import kept
from hotlap.diagnose.metric_growth import metric_growth
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "growing-step"


def _rss_growth_frac(view: View) -> float | None:
    ticks = [tick for tick in view.timeline.tick if tick.t >= view.start_ns]
    return ticks[-1].rss_bytes / ticks[0].rss_bytes - 1.0 if len(ticks) > 2 and ticks[0].rss_bytes > 0 else None


def find(view: View) -> Finding | None:
    """A steady growth: a retained graph when backward grows along with memory, a growing history otherwise.

    None where all that computes grew alike: that is said in a note. (A guard has asked that before.)
    """
    drift = find_drift(view)
    if drift is None or not drift.growing or metric_growth(view) is not None:
        return None
    if view.known_drift is None and grew_alike(view, drift):
        return None
    grown = grown_lines(view, drift.phase)
    where = [g.where for g in grown[: view.policy.max_where]]
    if drift.phase in ("forward", "backward"):  # the graph grows there, and is kept elsewhere
        where = [k.where for k in kept(view) if k.kind != "tensor"][: view.policy.max_where] or where
    where = where or view.stacks.phase(drift.phase).lines(view.policy.max_where)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    rss = _rss_growth_frac(view)
    phase = drift.phase.replace("_", " ")
    if drift.phase in ("forward", "backward") and (rss or 0.0) > 0.02:
        advice = f"Detach what is kept from step to step{at}: {phase} grows along with memory, so a graph is retained."
    elif drift.phase in ("forward", "backward"):
        advice = f"Detach, or cut to a fixed length, what {phase} carries over from step to step{at}."
    else:
        advice = f"Keep a running value instead of a history that grows every step{at} ({phase} grows)."
    evidence = {
        "first_s": drift.before_s, "last_s": drift.after_s, "phase": drift.phase, "rss_growth_frac": rss,
        "lines": [
            {"line": f"{g.where.file}:{g.where.line}", "early_s": g.early_s, "late_s": g.late_s}
            for g in grown[: view.policy.max_stacks]
        ],
    }  # fmt: skip
    seconds = drift.after_s - drift.before_s  # what each step costs too much by now, and more to come
    return view.finding(
        CAUSE, seconds, advice, where, detail=f"{drift.after_s / max(drift.before_s, 1e-9):.2f}x over the run, {phase}",
        phase=drift.phase, evidence=evidence,
    )  # fmt: skip
