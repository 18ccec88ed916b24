"""drift: throughput fell during the run."""

from __future__ import annotations

from hotlap.diagnose.alike import grew_alike
from hotlap.diagnose.drift import find_drift, grown_lines, neighbours_since
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "drift"


def find(view: View) -> Finding | None:
    """One change point after which steps are slower; the phase that grew and its lines name the cause.

    None where others took cores from then on that they had left alone before, or all that computes got slower alike:
    that is said in a note. (A guard has asked that before.)
    """
    drift = find_drift(view)
    if drift is None or drift.growing or drift.after_s <= drift.before_s or neighbours_since(view, drift) is not None:
        return None
    if view.known_drift is None and grew_alike(view, drift):
        return None
    rows = view.steady.rows
    slow = [row for row in rows if row.i >= drift.at_step]
    grown = grown_lines(view, drift.phase, slow[0].t if slow else None)
    where = [g.where for g in grown[: view.policy.max_where]]
    part = sum(row.n for row in slow) / max(1, view.steady.steps)
    phase = drift.phase.replace("_", " ")
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    advice = f"Look at what changed at step {drift.at_step}{at}: {phase} grew."
    if drift.phase == "data_wait":
        advice = (
            f"Make the data smaller or the memory larger: data wait grew at step {drift.at_step}, as it does when the "
            "page cache runs out."
        )
    evidence = {"at_step": drift.at_step, "before_s": drift.before_s, "after_s": drift.after_s, "phase": drift.phase}
    return view.finding(
        CAUSE, (drift.after_s - drift.before_s) * part, advice, where,
        detail=f"{drift.after_s / max(drift.before_s, 1e-9):.2f}x slower from step {drift.at_step}, {phase}",
        phase=drift.phase, evidence=evidence,
    )  # fmt: skip
