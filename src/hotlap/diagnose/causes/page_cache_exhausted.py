"""page-cache-exhausted: the data is larger than the page cache, so that each epoch reads it from storage again."""

from __future__ import annotations

from hotlap.diagnose.storage import storage_finding
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding
from hotlap.records.sizes import size_text

CAUSE = "page-cache-exhausted"


def find(view: View) -> Finding | None:
    """The wait for storage, where bytes still come from the device once every sample has been read."""
    memory = view.machine.memory_bytes
    advice = (
        f"Make the data smaller (keep it compressed, crop or resize it once) or give it more memory than the "
        f"{size_text(memory)} here: a cache that holds a part of it hits rarely under a shuffle. Reading in shuffled "
        "windows of neighbouring samples reads each part once."
    )
    return storage_finding(view, CAUSE, advice, "read from storage again in each epoch")
