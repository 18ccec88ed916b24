"""network-storage: the loader waits for files on a network mount.

The way out, a copy on a local disk, is advice and no lever. Where a script reads from is written in its arguments, its
configuration or its code, and C libraries open paths by themselves, so that no variable and no replaced function would
lead all reads to the copy; where a mount lies over the data, the script would no longer see what others write there. A
copy also takes longer than a trial, and space on a disk that is the user's to give. Levers that keep decoded files
(`cache-decode`) are tried all the same.
"""

from __future__ import annotations

from hotlap.diagnose.storage import storage_finding
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "network-storage"


def find(view: View) -> Finding | None:
    """The wait for storage, where most files of the batches looked into lie on a network file system."""
    advice = (
        "Copy the data set to a local disk before training (`hotlap stage SRC DST`), as one packed file rather than "
        "file by file, and train on the copy; where it does not fit, read ahead in more loader workers than cores."
    )
    return storage_finding(view, CAUSE, advice, "waiting for a network mount")
