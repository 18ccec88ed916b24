"""unfused: norms, activations and the like run one by one, each over memory and with a dispatch."""

from __future__ import annotations

from hotlap.diagnose.script import model_facts
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "unfused"


def find(view: View) -> Finding | None:
    """A prior only, by the number of norms: how much of a step lies between its products is not seen from outside."""
    model, policy = model_facts(view.timeline), view.policy
    norms = model.get("norm_layers") or 0
    if norms < policy.unfused_norms or model.get("compiled"):
        return None
    large = view.compute_bound
    prior = policy.unfused_prior * large + policy.unfused_small_prior * (1.0 - large)
    evidence = {"norm_layers": norms, "compute_s": view.compute_s, "basis": "prior", "prior": prior}
    return view.finding(
        CAUSE, view.compute_s * prior,
        "Compile the model before the first step: model.compile(). It costs tens of seconds at each start.",
        view.forward_where(),
        detail=f"{norms} norms, each an operation of its own", phase="forward", evidence=evidence,
    )  # fmt: skip
