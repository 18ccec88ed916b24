"""memory-format: convolutions run in NCHW where channels-last is faster."""

from __future__ import annotations

from hotlap.diagnose.script import conv2d_facts, model_facts
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "memory-format"


def find(view: View) -> Finding | None:
    """A prior on the 2-d convolutions' part of the compute: no other layer has such a layout."""
    model = model_facts(view.timeline)
    layers, frac = conv2d_facts(model)
    if not layers or model.get("channels_last") or (frac is not None and frac < view.policy.min_conv_frac):
        return None
    prior = view.policy.memory_format_prior * view.compute_bound
    seconds = view.compute_s * prior * (min(1.0, float(frac)) if frac is not None else 1.0)
    evidence = {
        "conv2d_layers": layers, "conv2d_frac": frac, "compute_s": view.compute_s, "basis": "prior", "prior": prior,
    }  # fmt: skip
    return view.finding(
        CAUSE, seconds, "Put the model and its input into memory_format=torch.channels_last before the first step.",
        view.forward_where(),
        detail=f"{layers} convolutions in NCHW", phase="forward", evidence=evidence,
    )  # fmt: skip
