"""decode: samples are decoded while the step waits."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import wait_evidence, wait_seconds, wait_where
from hotlap.records.findings import Finding

CAUSE = "decode"


def find(view: View) -> Finding | None:
    """The readers' part of the data wait, by their clock or, for readers no probe knows, by the stacks."""
    seconds = wait_seconds(view, "decode")
    where = wait_where(view, "decode")
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    each = view.loading.seconds("decode") if view.loading else None
    per = f" ({each:.3g} s of decoding per step)" if each is not None else ""
    advice = f"Decode each sample once and keep the result (cache or packed data) instead of every epoch{at}{per}."
    process = "one process" if view.workers == 0 else f"{view.workers} worker{'s' if view.workers > 1 else ''}"
    return view.finding(
        CAUSE, seconds, advice, where, detail=f"decoding, {process}", phase="data_wait",
        evidence=wait_evidence(view, "decode"), ablation="data",
    )  # fmt: skip
