"""optimizer-loop: the optimizer updates parameter by parameter."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.script import optimizer_rows
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "optimizer-loop"


def _loops(value: dict[str, Any], on_device: bool, policy_tensors: int) -> bool:
    """torch takes foreach by itself on accelerators only, unless told otherwise."""
    if value.get("fused") or (value.get("tensors") or 0) < policy_tensors:
        return False
    foreach = value.get("foreach")
    return foreach is False or (foreach is None and not on_device)


def find(view: View) -> Finding | None:
    """Optimizers without fused or foreach over many tensors: part of the optimizer phase, by a prior."""
    rows = optimizer_rows(view.timeline)
    looping = [r for r in rows if _loops(r.value, view.on_device, view.policy.optimizer_min_tensors)]
    if not looping:
        return None
    prior = view.policy.optimizer_prior
    seconds = view.seconds("optimizer") * prior * len(looping) / len(rows)
    row = looping[0]
    where = view.setting_where(row) or view.stacks.phase("optimizer").lines(1)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    name, tensors = row.value.get("class") or "the optimizer", row.value.get("tensors")
    evidence = {"tensors": tensors, "optimizer_s": view.seconds("optimizer"), "basis": "prior", "prior": prior}
    return view.finding(
        CAUSE, seconds, f"Pass fused=True (or foreach=True) to {name}{at}: it updates {tensors} tensors one by one.",
        where, detail=f"{name}, {tensors} tensors one by one", phase="optimizer", evidence=evidence,
    )  # fmt: skip
