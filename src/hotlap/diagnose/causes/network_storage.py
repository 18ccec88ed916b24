"""network-storage: the loader waits for files on a network mount."""

from __future__ import annotations

from hotlap.diagnose.storage import storage_finding
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "network-storage"


def find(view: View) -> Finding | None:
    """The wait for storage, where most files of the batches looked into lie on a network file system."""
    advice = (
        "Copy the data set to a local disk before training, as one packed file rather than file by file; where it does "
        "not fit, read ahead in more loader workers than cores."
    )
    return storage_finding(view, CAUSE, advice, "waiting for a network mount")
