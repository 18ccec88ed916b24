"""unfused: norms, activations and the like run one by one, each over memory and with a dispatch."""

from __future__ import annotations

from hotlap.diagnose.script import model_facts
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "unfused"

NORMS = 20
"""Norms of a model from which what lies between its products is a part of the step worth fusing. Prior: a ResNet-18 has
as many, a toy of three layers has not."""
PRIOR = 0.08
"""Part of compute that torch.compile saves where operations are large. Measured on two CPU cores, beside bf16 and
channels-last: 0 on a SE-ResNet-34, 0.08 on a narrower one, 0.11 on a ViT ..."""
SMALL_PRIOR = 0.25
"""... and where Python and dispatch bound the step: 0.17 on a ViT of 25 small blocks, 0.29 on a MobileFaceNet."""

OF_TORCH = "as a part of a class of yours, since of torch's own model.compile() compiles nothing."


def find(view: View) -> Finding | None:
    """A prior only, by the number of norms: how much of a step lies between its products is not seen from outside."""
    model = model_facts(view.timeline)
    norms = model.get("norm_layers") or 0
    if norms < NORMS or model.get("compiled"):
        return None
    large = view.compute_bound
    prior = PRIOR * large + SMALL_PRIOR * (1.0 - large)
    how = OF_TORCH if model.get("class_of_torch") else "model.compile()."
    evidence = {"norm_layers": norms, "compute_s": view.compute_s, "basis": "prior", "prior": prior}
    return view.finding(
        CAUSE, view.compute_s * prior,
        f"Compile the model before the first step: {how} It costs tens of seconds at each start.",
        view.forward_where(),
        detail=f"{norms} norms, each an operation of its own", phase="forward", evidence=evidence,
    )  # fmt: skip
