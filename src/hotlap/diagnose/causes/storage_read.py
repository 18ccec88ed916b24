"""storage-read: the loader waits for the disk."""

from __future__ import annotations

from hotlap.diagnose.storage import storage_finding
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "storage-read"


def find(view: View) -> Finding | None:
    """Load time off the CPU while bytes came from the device; sleeps and fights for the cores are not storage."""
    read = view.loading.read_bytes_per_sample if view.loading else None
    much = f" ({read:.0f} bytes per sample come from the device)" if read else ""
    advice = f"Keep the data set in memory or on local disk, or read ahead in more loader workers{much}."
    return storage_finding(view, CAUSE, advice, "waiting for storage")
