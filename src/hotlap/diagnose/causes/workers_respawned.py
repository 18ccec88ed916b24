"""workers-respawned: workers are started anew each epoch."""

from __future__ import annotations

from hotlap.diagnose.rebuilt import anew_each_step, times_rebuilt
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "workers-respawned"


def find(view: View) -> Finding | None:
    """Workers without persistence, and more than one start seen (of one loader: else it is ``loader-rebuilt``)."""
    start, loader = view.times.epoch_start, view.loader
    if loader is None or loader.num_workers == 0 or loader.persistent_workers or start.count < 2:
        return None
    if times_rebuilt(view) > 1:
        return None
    anew = anew_each_step(view)
    where = [*anew, *view.loader_where()]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    every = f"{start.every:.0f}" if start.every else "?"
    evidence = {
        "each_s": start.each_s, "every_steps": start.every, "starts": start.count, "workers": loader.num_workers,
    }  # fmt: skip
    mend = f"Keep one iterator, not one for each batch{at}" if anew else f"Set persistent_workers=True{at}"
    return view.finding(
        CAUSE, start.per_step_s, f"{mend}: starting {loader.num_workers} anew every {every} steps costs "
        f"{start.each_s:.3g} s each time.", where,
        detail=f"workers started every {every} steps", phase="data_wait", evidence=evidence,
        ablation="data",
    )  # fmt: skip
