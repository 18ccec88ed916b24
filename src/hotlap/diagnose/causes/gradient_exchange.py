"""gradient-exchange: ranks exchange their gradients in every step, and copy them into buckets and back."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "gradient-exchange"


def find(view: View) -> Finding | None:
    """What copying costs, where gradients are no views of their buckets, and what other buckets may hide. Priors."""
    rows = view.setting_rows("ddp")
    world = view.timeline.header.world
    size = rows[-1].value.get("gradient_bytes") if rows else None
    if world < 2 or not isinstance(size, int | float) or size <= 0:
        return None
    policy = view.policy
    is_view = bool(rows[-1].value.get("bucket_view"))
    copy_s = (
        0.0 if is_view else 2 * size / (policy.device_copy_bytes_per_s if view.on_device else policy.copy_bytes_per_s)
    )
    exchange_s = 2 * (world - 1) / world * size / policy.exchange_bytes_per_s
    seconds = min(copy_s + policy.exchange_hidden_prior * exchange_s, view.seconds("backward"))
    where = view.setting_where(rows[-1])
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {
        "gradient_bytes": int(size), "world": world, "bucket_view": is_view, "copy_s": min(copy_s, seconds),
        "exchange_s": exchange_s, "basis": "prior",
    }  # fmt: skip
    first = "" if is_view else f"Pass gradient_as_bucket_view=True to DistributedDataParallel{at}. "
    return view.finding(
        CAUSE, seconds, f"{first}Try other sizes of its buckets (bucket_cap_mb); with several micro-batches per step, "
        "put all but the last under no_sync().", where, detail=f"{world} ranks exchange gradients", phase="backward",
        evidence=evidence,
    )  # fmt: skip
