"""zero-grad: gradients are zeroed in place, and added to, where they could be let go."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "zero-grad"


def find(view: View) -> Finding | None:
    """The zero-grad phase, where gradients were seen to be the same tensors from look to look.

    Adding to them costs in backward as well, which nothing here can tell apart. Not with several ranks, whose gradients
    are views of buckets.
    """
    kept = any(row.value.get("gradients_kept") for row in view.setting_rows("backends"))
    if not kept or view.timeline.header.world > 1:
        return None
    seconds = view.seconds("zero_grad")
    where = view.stacks.phase("zero_grad").lines(view.policy.max_where)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    return view.finding(
        CAUSE, seconds, f"Call zero_grad() with set_to_none=True (its default){at}.", where,
        detail="zeroed in place", phase="zero_grad", evidence={"zero_grad_s": seconds, "gradients_kept": True},
    )  # fmt: skip
