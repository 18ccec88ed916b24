"""samples-loop: a Python loop over the samples of a batch."""

from __future__ import annotations

from hotlap.diagnose.rounds import rounds
from hotlap.diagnose.shapes import costly
from hotlap.diagnose.view import View
from hotlap.records.code_shape import CodeShape
from hotlap.records.findings import Finding

CAUSE = "samples-loop"


def find(view: View) -> Finding | None:
    """Forward samples inside ``for i in range(batch size)`` over ``x[i]``, as much of the backward; the residual.

    A loop that was seen to make few rounds goes over something else: scales, views, or the batches themselves.
    """
    counted = rounds(view)
    found = [
        on for on in costly(view, CAUSE, ["forward", "residual"])
        if max((counted[on.shape.file, line] for line in on.shape.lines if (on.shape.file, line) in counted),
               default=view.policy.samples_loop_rounds) >= view.policy.samples_loop_rounds
    ]  # fmt: skip
    if not found:
        return None
    prior = view.policy.samples_loop_prior
    seconds = sum(on.seconds + view.seconds("backward") * on.forward_share for on in found)
    where = [on.where() for on in found[: view.policy.max_where]]
    evidence = {
        "forward_share": sum(on.forward_share for on in found), "loop": _header(view, found[0].shape), "basis": "prior",
        "prior": prior, **view.stack_evidence(found[0].book),
    }  # fmt: skip
    return view.finding(
        CAUSE, seconds * prior, f"Replace the loop over samples at {where[0].file}:{where[0].line} by one operation on "
        "the batch (torch.vmap, or a mask where samples differ in length).", where,
        detail=f"sample by sample, {found[0].shape.detail}", phase="forward", evidence=evidence,
    )  # fmt: skip


def _header(view: View, shape: CodeShape) -> str:
    """The loop as python-loop has it, which then is no other: a comprehension's line says more than its loop."""
    if shape.text.startswith("for "):
        return shape.text
    headers = (view.timeline.loops.get(f"{shape.file}:{line}") for line in sorted(shape.lines))
    return next((header for header in headers if header), shape.text)
