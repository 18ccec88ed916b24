"""samples-loop: a Python loop over the samples of a batch."""

from __future__ import annotations

from hotlap.diagnose.shapes import costly
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "samples-loop"


def find(view: View) -> Finding | None:
    """Forward samples inside ``for i in range(batch size)`` over ``x[i]``, as much of the backward; the residual."""
    found = costly(view, CAUSE, ["forward", "residual"])
    if not found:
        return None
    prior = view.policy.samples_loop_prior
    seconds = sum(on.seconds + view.seconds("backward") * on.forward_share for on in found)
    where = [on.where() for on in found[: view.policy.max_where]]
    evidence = {
        "forward_share": sum(on.forward_share for on in found), "loop": found[0].shape.text, "basis": "prior",
        "prior": prior, **view.stack_evidence(found[0].book),
    }  # fmt: skip
    return view.finding(
        CAUSE, seconds * prior, f"Replace the loop over samples at {where[0].file}:{where[0].line} by one operation on "
        "the batch (torch.vmap, or a mask where samples differ in length).", where,
        detail=f"sample by sample, {found[0].shape.detail}", phase="forward", evidence=evidence,
    )  # fmt: skip
