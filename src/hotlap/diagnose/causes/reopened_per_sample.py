"""reopened-per-sample: the same container or file is opened anew for every sample."""

from __future__ import annotations

from hotlap.diagnose.causes.whole_file_read import WHOLE
from hotlap.diagnose.reading import Opened, is_parsed, repeated_finding
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "reopened-per-sample"


def _advice(opened: Opened) -> str:
    return (
        f"Open the file once per worker and keep it ({opened.op} at {opened.where.file}:{opened.where.line}): in "
        "__getitem__ when it is first asked, not in __init__, so that each worker has its own."
    )


def find(view: View) -> Finding | None:
    """Opening calls that name the same file several times within one batch."""
    return repeated_finding(
        view, CAUSE, lambda o: not is_parsed(o) and o.op not in WHOLE, _advice, "one file, opened for each sample"
    )
