"""whole-file-read: an array file is read whole for every sample, of which a part is used."""

from __future__ import annotations

from hotlap.diagnose.reading import Opened, repeated_finding
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "whole-file-read"

WHOLE = frozenset(("numpy.load", "numpy.fromfile", "torch.load"))
"""Operations that read all of an array."""


def _advice(opened: Opened) -> str:
    at = f"{opened.where.file}:{opened.where.line}"
    size = f" of {opened.file_bytes / max(1, opened.files):.0f} bytes"
    if opened.op == "torch.load":
        return f"Load the file once, or with mmap=True, and index it ({at} loads all{size} for each sample)."
    return f'Load the array once with mmap_mode="r" and index it ({at} reads all{size} for each sample).'


def find(view: View) -> Finding | None:
    """Array files that are loaded several times within one batch."""
    return repeated_finding(view, CAUSE, lambda o: o.op in WHOLE, _advice, "one array, read whole for each sample")
