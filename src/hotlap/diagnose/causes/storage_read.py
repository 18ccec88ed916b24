"""storage-read: the loader waits for the disk or the network mount."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import wait_evidence, wait_seconds, wait_where
from hotlap.records.findings import Finding

CAUSE = "storage-read"


def find(view: View) -> Finding | None:
    """Load time off the CPU while bytes came from the device; sleeps and fights for the cores are not storage."""
    where = wait_where(view, "storage")
    loading = view.loading
    read = loading.read_bytes_per_sample if loading else None
    much = f" ({read:.0f} bytes per sample come from the device)" if read else ""
    advice = f"Keep the data set in memory or on local disk, or read ahead in more loader workers{much}."
    evidence = wait_evidence(view, "storage")
    if loading is not None:
        evidence["off_cpu_frac"] = loading.wait_frac
    return view.finding(
        CAUSE, wait_seconds(view, "storage"), advice, where, detail="waiting for storage", phase="data_wait",
        evidence=evidence, ablation="data",
    )  # fmt: skip
