"""collate: putting samples together into a batch."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import wait_evidence, wait_seconds, wait_where
from hotlap.records.findings import Finding

CAUSE = "collate"


def find(view: View) -> Finding | None:
    """The collate function's part of the data wait."""
    where = wait_where(view, "collate")
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    advice = f"Collate{at} by one copy into a preallocated batch tensor, or in loader workers."
    return view.finding(
        CAUSE, wait_seconds(view, "collate"), advice, where, detail="putting batches together", phase="data_wait",
        evidence=wait_evidence(view, "collate"), ablation="data",
    )  # fmt: skip
