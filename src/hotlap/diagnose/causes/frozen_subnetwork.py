"""frozen-subnetwork: a network that is not trained runs as if it were."""

from __future__ import annotations

from statistics import median
from typing import Any

from hotlap.diagnose.script import conv2d_facts
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding
from hotlap.records.rows import Setting

CAUSE = "frozen-subnetwork"


def _networks(view: View) -> list[tuple[Setting, float]]:
    """Each network with its seconds per step: measured on the CPU, elsewhere its part of the forward by parameters."""
    rows: dict[tuple[Any, ...], list[Setting]] = {}
    for row in view.setting_rows("frozen"):
        rows.setdefault((row.value.get("class"), row.value.get("parameters"), row.frame), []).append(row)
    trained = max((r.value.get("parameters") or 0 for r in view.setting_rows("model")), default=0)
    found = []
    for seen in rows.values():
        times = [float(r.value["s"]) for r in seen if r.value.get("s") is not None]
        size = seen[-1].value.get("parameters") or 0
        guess = view.seconds("forward") * size / max(1, size + trained)
        found.append((seen[-1], median(times) if times else guess))
    return sorted(found, key=lambda pair: -pair[1])


def _saved(view: View, value: dict[str, Any], seconds: float) -> tuple[float, list[str]]:
    """(seconds that could vanish, what to do) for one network."""
    policy, advice, part = view.policy, [], 0.0
    is_fp32 = value.get("dtype") == "float32" and not value.get("autocast")
    if is_fp32 and view.machine.fast_bf16:
        part = policy.frozen_prior
        advice.append("run it under torch.autocast in bf16")
    elif (conv2d_facts(value)[1] or 0.0) >= policy.min_conv_frac and not value.get("channels_last"):
        part = policy.frozen_layout_prior
        advice.append("put it into channels_last")
    calls = max(1.0, float(value.get("calls") or 1.0))
    saved = seconds * part * view.bound_by_compute(seconds / calls, value.get("modules") or 0, policy.forward_frac)
    if not saved:
        advice = []
    if value.get("recorded") and not value.get("asked"):
        saved += view.seconds("backward") * seconds / max(view.seconds("forward"), seconds)
        advice.insert(0, "call requires_grad_(False) on it, and it under torch.no_grad()")
    return saved, advice


def find(view: View) -> Finding | None:
    """Networks called in training steps that no optimizer trains: in full precision, or recording a graph."""
    told = []
    total = 0.0
    for row, seconds in _networks(view):
        saved, advice = _saved(view, row.value, seconds)
        if saved > 0.0:
            told.append((row, seconds, advice))
            total += saved
    if not told:
        return None
    row, seconds, advice = told[0]
    where = [w for each, _, _ in told[: view.policy.max_where] for w in view.setting_where(each)]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    name = row.value.get("class") or "the network"
    layers, frac = conv2d_facts(row.value)  # of which a layout can be changed
    evidence = {
        "network": name, "parameters": row.value.get("parameters"), "network_s": seconds, "basis": "prior",
        "conv_layers": layers, "conv_frac": frac,
        "asked": bool(row.value.get("asked")), "frozen": bool(row.value.get("frozen")),
        "dtype": row.value.get("dtype"), "autocast": bool(row.value.get("autocast")), "networks": len(told),
        "training": bool(row.value.get("training")),
    }  # fmt: skip
    return view.finding(
        CAUSE, total, f"{name}{at} is not trained: {', and '.join(advice)}.", where,
        detail=f"{name}, not trained", phase="forward", evidence=evidence,
    )  # fmt: skip
