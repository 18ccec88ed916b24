"""host-tensors: tensors are made on the host and copied to the device inside the step."""

from __future__ import annotations

from hotlap.diagnose.shapes import costly
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "host-tensors"


def find(view: View) -> Finding | None:
    """Samples on ``torch.zeros(...).to(device)`` in a loop or a forward; on a device only."""
    if not view.on_device:
        return None
    found = costly(view, CAUSE, [p for p in view.phases if p not in ("data_wait", "validation")])
    if not found:
        return None
    prior = view.policy.host_tensor_prior
    where = [on.where() for on in found[: view.policy.max_where]]
    evidence = {"on_line_s": sum(on.seconds for on in found), "places": len(found), "basis": "prior", "prior": prior}
    evidence |= view.stack_evidence(found[0].book)
    return view.finding(
        CAUSE, sum(on.seconds for on in found) * prior, f"Give device= to the function that makes the tensor at "
        f"{where[0].file}:{where[0].line}: a copy from pageable memory also waits for the device.", where,
        detail=found[0].shape.detail, phase="h2d", evidence=evidence,
    )  # fmt: skip
