"""denormals: the CPU computes on numbers so small that it takes its slow path."""

from __future__ import annotations

from statistics import median

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "denormals"


def _lost(share: float, factor: float) -> float:
    """Part of the time that goes when ``share`` of the operands, ``factor`` times slower than the rest, are flushed."""
    return 1.0 - 1.0 / (1.0 + share * (factor - 1.0))


def find(view: View) -> Finding | None:
    """Denormals in the last sample: weights and gradients slow compute, the optimizer's state slows its update.

    Inputs slow the layer that takes them, of which the part in the compute is not known. Activations are not sampled: a
    layer that makes them shows in the gradients of its weights.
    """
    value = view.setting("denormals")
    given = [float(row.value.get("denormal_frac") or 0.0) for row in view.setting_rows("inputs")]
    inputs = median(given) if given else 0.0
    if view.on_device or not (value or inputs):
        return None
    weights, gradients = float(value.get("weights") or 0.0), float(value.get("gradients") or 0.0)
    state = float(value.get("state") or 0.0)
    policy = view.policy
    in_compute, in_update = max(weights, gradients), max(weights, gradients, state)
    by_inputs = _lost(inputs, policy.denormal_compute_factor) * policy.denormal_inputs_prior
    seconds = view.compute_s * max(_lost(in_compute, policy.denormal_compute_factor), by_inputs)
    seconds += view.seconds("optimizer") * _lost(in_update, policy.denormal_update_factor)
    evidence = {
        "weights_frac": weights, "gradients_frac": gradients, "optimizer_state_frac": state, "inputs_frac": inputs,
        "basis": "prior",
        "prior": policy.denormal_compute_factor,
    }  # fmt: skip
    where = "the optimizer's state" if state > in_compute else "weights" if weights > gradients else "gradients"
    where = "inputs" if inputs > max(in_compute, state) else where
    return view.finding(
        CAUSE, seconds, "Call torch.set_flush_denormal(True) before the first computation of the script.",
        view.forward_where(), detail=f"numbers below 1e-38 in {where}",
        phase="optimizer" if state > max(in_compute, inputs) else "forward", evidence=evidence,
    )  # fmt: skip
