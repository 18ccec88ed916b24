"""augment: Python work per sample while the step waits."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import wait_evidence, wait_seconds, wait_where
from hotlap.records.findings import Finding

CAUSE = "augment"


def find(view: View) -> Finding | None:
    """What is left of the loading once decoding, collating and storage are taken out."""
    seconds = wait_seconds(view, "augment")
    where = wait_where(view, "augment")
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    asleep = view.loading is not None and view.loading.sleep_frac >= view.policy.sleep_frac
    if asleep:
        advice = f"Take the sleep out of the sample loading{at}."
    else:
        advice = f"Do the work per sample{at} on whole batches, on the device, or in loader workers."
    process = "one process" if view.workers == 0 else f"{view.workers} worker{'s' if view.workers > 1 else ''}"
    return view.finding(
        CAUSE, seconds, advice, where, detail=f"{'sleeping' if asleep else 'work per sample'}, {process}",
        phase="data_wait", evidence=wait_evidence(view, "augment"), ablation="data",
    )  # fmt: skip
