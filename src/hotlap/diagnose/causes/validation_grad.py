"""validation-grad: validation records an autograd graph that nobody uses."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "validation-grad"


def find(view: View) -> Finding | None:
    """Validations that ran with gradients enabled (``grad_mode`` of the event)."""
    events = view.events("validation")
    recording = [event for event in events if event.d.get("grad_mode", 0.0) > 0]
    if not recording:
        return None
    prior = view.policy.validation_grad_prior
    seconds = view.seconds("validation") * prior * len(recording) / len(events)
    where = view.event_where("validation")
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {"validations": len(events), "recording": len(recording), "basis": "prior", "prior": prior}
    return view.finding(
        CAUSE, seconds, f"Run the validation{at} under torch.no_grad().", where,
        detail="graph recorded for nothing", phase="validation", evidence=evidence, ablation=None,
    )  # fmt: skip
