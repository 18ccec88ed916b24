"""Why the data wait grew: loading itself got slower, and at what, or somebody who loaded no longer does."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Any

from hotlap.diagnose.storage import storage_cause
from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import wait_where
from hotlap.records.findings import Where
from hotlap.records.timeline import Timeline

__all__ = ["why_loading"]

_SILENT = 1.5
"""Times the usual pause between a worker's rows from which it is silent: pauses differ by a batch or so."""
_ADVICE = {
    "storage-read": "Look at the disk or mount: reading the same samples takes longer.",
    "network-storage": "Copy the data to a local disk: the network mount answers later than it did.",
    "page-cache-exhausted": "Make the data smaller or the memory larger: the page cache has run out.",
    "small-files": "Pack the small files into one: reading them from storage takes longer now.",
    "decode": "Look at what is decoded: samples take longer to decode than before.",
    "augment": "Look at what is done to each sample: it takes longer than before.",
    "collate": "Look at how batches are put together: it takes longer than before.",
}


def why_loading(whole: View, early: View, late: View) -> tuple[str, list[Where], str, dict[str, Any]] | None:
    """Cause, lines, advice and evidence; None when loading was not measured or does not explain the wait."""
    lost = _lost_workers(whole, early, late)
    if lost:
        where = late.loader_where()
        advice = "Look at the loader's workers: some no longer deliver, and the others do their work too."
        return "worker-lost", where, advice, {"workers_loading": lost[1], "workers_before": lost[0]}
    before, after = early.loading, late.loading
    if before is None or after is None or not before.load_s or not after.load_s:
        return None
    if after.load_s < (1.0 + whole.policy.load_growth_frac) * before.load_s:
        return None
    more = {k: (after.seconds(k) or 0.0) - (before.seconds(k) or 0.0) for k in after.kinds}
    kind = max(more, key=lambda k: more[k]) if more else "augment"
    cause = storage_cause(whole)[0] if kind == "storage" else kind
    where = wait_where(late, kind)
    numbers = {
        "load_s_before": before.load_s, "load_s_after": after.load_s,
        "read_bytes_per_sample_before": before.read_bytes_per_sample,
        "read_bytes_per_sample_after": after.read_bytes_per_sample,
    }  # fmt: skip
    return cause, where, _ADVICE[cause], numbers


def _lost_workers(whole: View, early: View, late: View) -> tuple[int, int] | None:
    """Workers that loaded before and after; None when none was lost.

    A worker of an old run, or of slow steps, may write no row after the change although it goes on as before.
    """

    def loading(view: View) -> int:
        return sum(1 for w in view.timeline.workers if any(row.batches for row in w.load))

    before, after = loading(early), loading(late)
    persistent = late.loader is not None and late.loader.persistent_workers
    silent = any(_silent(worker, whole.timeline) for worker in whole.timeline.workers)
    return (before, after) if persistent and 0 < after < before and silent else None


def _silent(worker: Timeline, trainer: Timeline) -> bool:
    """Whether a worker has written nothing for clearly longer than it usually lets pass between two rows."""
    at = [row.t for row in worker.load]
    now = trainer.step[-1].t + trainer.step[-1].w
    return len(at) > 2 and now - at[-1] > _SILENT * median(b - a for a, b in pairwise(at))
