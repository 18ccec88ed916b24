"""optimizer-loop: the optimizer updates parameter by parameter, in several passes over memory."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.script import optimizer_rows
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where
from hotlap.records.rows import Setting

CAUSE = "optimizer-loop"

_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
"""Classes that take ``fused=True``; ``foreach=True``, too."""
_FOREACH = (*_FUSED, "NAdam", "RAdam", "RMSprop", "Rprop", "Adamax", "ASGD", "Adadelta")
"""Classes that take ``foreach=True``. Of others nobody knows here what they take."""
_PASSES = ("Adam", "AdamW")
"""A step of these is five operations on whole tensors, one after the other; fused it is one pass over memory."""
_LARGE = 1_000_000
"""Parameters that no cache holds (with gradients and both moments, 16 MB)."""


def _many(value: dict[str, Any], view: View) -> bool:
    return (value.get("tensors") or 0) >= view.policy.optimizer_min_tensors


def _large(value: dict[str, Any], view: View) -> bool:
    large = (value.get("parameters") or 0) >= _LARGE
    return large and not view.on_device and value.get("class") in _PASSES


def _loops(value: dict[str, Any], view: View) -> bool:
    """torch takes foreach by itself on accelerators only, unless told otherwise."""
    if value.get("fused") or value.get("class") not in _FOREACH or not (_many(value, view) or _large(value, view)):
        return False
    foreach = value.get("foreach")
    return foreach is False or (foreach is None and not view.on_device)


def _part(looping: list[Setting], rows: list[Setting]) -> float:
    """Part of the optimizer phase that ``looping`` take of ``rows``: by parameters, or by tensors where those are not
    known of all."""
    for key in ("parameters", "tensors"):
        sizes = [row.value.get(key) or 0 for row in rows]
        if all(sizes):
            return float(sum(row.value[key] for row in looping) / sum(sizes))
    return len(looping) / len(rows)


def _made(largest: Setting, view: View) -> list[Where]:
    """The lines that make optimizers which can be told the same, that of ``largest`` first: small ones take it too."""
    takes = _FUSED if largest.value["class"] in _FUSED else _FOREACH
    told = (r for r in view.setting_rows("optimizer") if r.value.get("class") in takes)
    rows = [largest, *(r for r in told if not (r.value.get("fused") or r.value.get("foreach")))]
    return list(dict.fromkeys(line for each in rows for line in view.setting_where(each)))


def find(view: View) -> Finding | None:
    """Optimizers without fused or foreach over many or large tensors: part of the optimizer phase, by a prior."""
    rows = optimizer_rows(view.timeline)
    looping = [r for r in rows if _loops(r.value, view)]
    if not looping:
        return None
    prior = view.policy.optimizer_prior
    seconds = view.seconds("optimizer") * prior * _part(looping, rows)
    row = max(looping, key=lambda each: each.value.get("parameters") or 0)
    where = _made(row, view) or view.stacks.phase("optimizer").lines(1)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    name, tensors = row.value["class"], row.value.get("tensors")
    large = "" if _many(row.value, view) else f" of {row.value['parameters']:,} parameters"
    evidence = {
        "tensors": tensors, "parameters": row.value.get("parameters"), "optimizer_s": view.seconds("optimizer"),
        "basis": "prior", "prior": prior,
    }  # fmt: skip
    both = "fused=True (or foreach=True)" if name in _FUSED else "foreach=True"
    fused = "fused=True" if large else both
    return view.finding(
        CAUSE, seconds, f"Pass {fused} to {name}{at}: it updates {tensors} tensors{large} one by one.", where,
        detail=f"{name}, {tensors} tensors{large} one by one", phase="optimizer", evidence=evidence,
    )  # fmt: skip
