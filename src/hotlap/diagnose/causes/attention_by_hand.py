"""attention-by-hand: attention is written out as products and a softmax."""

from __future__ import annotations

from hotlap.diagnose.faults import page_faults
from hotlap.diagnose.script import model_facts
from hotlap.diagnose.shapes import costly
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "attention-by-hand"
PAGE_BYTES = 4096
"""The smallest page in use: where pages are larger, less is claimed."""


def find(view: View) -> Finding | None:
    """Forward samples from the first product to the second, and as much of the backward.

    The page faults on those lines go with the matrix of scores, which one kernel does not make: they count whole, the
    prior takes its part of the rest. Not on a CPU in bf16, where the written-out form was the faster one.
    """
    if not view.on_device and model_facts(view.timeline).get("autocast"):
        return None
    found = costly(view, CAUSE, ["forward"])
    if not found:
        return None
    seconds = sum(on.seconds + view.seconds("backward") * on.forward_share for on in found)
    compute_s = view.seconds("forward") + view.seconds("backward")
    faults, own = page_faults(view), min(1.0, seconds / compute_s) if compute_s > 0.0 else 0.0
    faults_s = faults.seconds * own if faults is not None else 0.0
    prior = view.policy.attention_prior if view.on_device else view.policy.attention_cpu_prior
    if faults is not None and faults.per_step * own * PAGE_BYTES >= view.policy.attention_large_bytes:
        prior = view.policy.attention_large_prior
    gain_s = faults_s + (seconds - faults_s) * prior
    first, where = found[0], [on.where() for on in found[: view.policy.max_where]]
    evidence = {
        "forward_share": sum(on.forward_share for on in found),
        "places": len(found),
        "page_faults_s": faults_s,
        "basis": "prior",
        "prior": prior,
        **view.stack_evidence(first.book),
    }  # fmt: skip
    at = f"{where[0].file}:{where[0].line}"
    advice = f"Call F.scaled_dot_product_attention(q, k, v) in {first.shape.function} at {at}"
    advice += "." if view.on_device else ", and measure it: on a CPU in bf16 it is the slower form."
    return view.finding(
        CAUSE, gain_s, advice, where, detail="products and a softmax", phase="forward", evidence=evidence
    )
