"""needless-workers: samples take less time than their way from the worker."""

from __future__ import annotations

from hotlap.diagnose.view import View
from hotlap.diagnose.waiting import handing_over_s
from hotlap.records.findings import Finding

CAUSE = "needless-workers"


def find(view: View) -> Finding | None:
    """The step waits longer for its workers than loading in the training process would take."""
    loader, loading, seconds = view.loader, view.loading, handing_over_s(view)
    if loader is None or loading is None or loading.load_s is None or seconds <= 0.0:
        return None
    where = view.loader_where()
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    evidence = {"workers": view.workers, "load_s_per_step": loading.load_s, "data_wait_s": view.times.wait_s}
    advice = (
        f"Set num_workers=0{at}: a batch takes {loading.load_s:.2g} s to load, and the step waits "
        f"{view.times.wait_s:.2g} s for the worker that has loaded it."
    )
    detail = "batches take longer on their way than to load"
    return view.finding(CAUSE, seconds, advice, where, detail=detail, phase="data_wait", evidence=evidence,
                        ablation="data")  # fmt: skip
