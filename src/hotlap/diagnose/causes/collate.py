"""collate: putting samples together into a batch."""

from __future__ import annotations

import re

from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import wait_evidence, wait_seconds, wait_where
from hotlap.records.findings import Finding

CAUSE = "collate"

_CONVERTS = re.compile(r"torch\.(?:tensor|as_tensor|Tensor|\w+Tensor)\(")


def find(view: View) -> Finding | None:
    """The collate function's part of the data wait; lists that become tensors number by number are told apart."""
    where = wait_where(view, "collate")
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    converts = next((w for w in where if _CONVERTS.search(w.text)), None)
    if converts is not None:
        advice = (
            f"Make one array of the list before it becomes a tensor at {converts.file}:{converts.line}: "
            "torch.from_numpy(numpy.stack(arrays)). torch.tensor converts a list number by number."
        )
    else:
        advice = f"Collate{at} by one copy into a preallocated batch tensor, or in loader workers."
    evidence = wait_evidence(view, "collate") | {"converts_lists": converts is not None}
    return view.finding(
        CAUSE, wait_seconds(view, "collate"), advice, where,
        detail="lists become tensors" if converts is not None else "putting batches together", phase="data_wait",
        evidence=evidence, ablation="data",
    )  # fmt: skip
