"""small-files: samples lie in many small files."""

from __future__ import annotations

from hotlap.diagnose.storage import storage_finding
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "small-files"


def find(view: View) -> Finding | None:
    """The wait for storage, where each sample opens a small file of its own."""
    advice = (
        "Pack the samples into one file (an array, a tar of shards) and read them from there: a small file costs a "
        "seek and a look-up of its name each time."
    )
    return storage_finding(view, CAUSE, advice, "a small file for each sample")
