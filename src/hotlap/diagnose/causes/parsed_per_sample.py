"""parsed-per-sample: a table or an index is parsed from its file for every sample."""

from __future__ import annotations

from hotlap.diagnose.reading import Opened, is_parsed, repeated_finding
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "parsed-per-sample"


def _advice(opened: Opened) -> str:
    return (
        f"Parse the file once, in __init__, and keep the result ({opened.op} at {opened.where.file}:"
        f"{opened.where.line} runs for each sample)."
    )


def find(view: View) -> Finding | None:
    """Parsers that were given the same file several times within one batch."""
    return repeated_finding(view, CAUSE, is_parsed, _advice, "one file, parsed for each sample")
