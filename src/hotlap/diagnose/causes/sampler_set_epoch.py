"""sampler-set-epoch: every epoch draws the samples in the same order, since the sampler is never told the epoch."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "sampler-set-epoch"


def find(view: View) -> Finding | None:
    """A shuffling DistributedSampler that started epochs with one and the same number. It costs quality, not time."""
    for row in reversed(view.setting_rows("sampler")):
        epochs = row.value.get("epochs") or []
        if row.value.get("shuffle") and len(epochs) > 1 and len(set(epochs)) == 1:
            where = view.setting_where(row)
            at = f" before {where[0].file}:{where[0].line}" if where else ""
            return Finding(
                CAUSE, 0.0, 0.0, confirmed=False, where=where, advice=f"Call sampler.set_epoch(epoch){at}: without it "
                "each epoch has the same order.", detail=f"{len(epochs)} epochs in one order", phase=None,
                evidence={"epochs": epochs, "class": row.value.get("class")},
            )  # fmt: skip
        if row.value.get("shuffle"):
            return None
    return None
