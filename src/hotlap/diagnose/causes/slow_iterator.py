"""slow-iterator: the step waits for an iterator that is no DataLoader."""

from __future__ import annotations

from hotlap.diagnose.host import residual_seconds
from hotlap.diagnose.kinds import in_loader
from hotlap.diagnose.stacks import Sampled
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "slow-iterator"


def find(view: View) -> Finding | None:
    """Residual samples below a ``for`` header or ``next`` of the user's, outside torch's loader."""

    def ours(sample: Sampled) -> bool:
        return not any(in_loader(frame) for frame in sample.frames)

    seconds, book = residual_seconds(view, "iterator")
    book = book.where(ours)
    where = book.lines(view.policy.max_where)
    asked = book.lines(1, lambda sample: sample.user[0] if sample.user else None)
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {"asked_at": [f"{w.file}:{w.line}" for w in asked], **view.stack_evidence(book)}
    return view.finding(
        CAUSE, seconds, f"Make batches ahead of the step{at}: in a background thread, or a DataLoader with workers.",
        where, detail="waiting for an iterator", phase="residual", evidence=evidence, ablation="data",
    )  # fmt: skip
