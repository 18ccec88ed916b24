"""loader-rebuilt: the DataLoader is constructed anew each epoch, or the data set with it."""

from __future__ import annotations

from hotlap.diagnose.rebuilt import constructs, data_set_anew, times_rebuilt
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding

CAUSE = "loader-rebuilt"


def find(view: View) -> Finding | None:
    """Epoch starts of a loader that was made several times at one line: no worker can stay alive between them."""
    start, count = view.times.epoch_start, times_rebuilt(view)
    if count < 2 or start.count < 2 or view.loader is None or view.loader.where is None:
        return None
    where = view.loader.where
    anew_s, book = data_set_anew(view)
    heavy = anew_s > start.per_step_s
    lines = book.lines(view.policy.max_where, lambda sample: constructs(sample, where)) if heavy else []
    if (where.file, where.line) not in {(line.file, line.line) for line in lines}:
        lines.append(where)
    every = f"{start.every:.0f}" if start.every else "?"
    keep = " with persistent_workers=True" if view.workers else ""
    what = "data set and its DataLoader" if heavy else "DataLoader"
    each_s = start.each_s + anew_s * (start.every or 1.0)
    advice = (
        f"Construct the {what} at {lines[0].file}:{lines[0].line} once, before the loop over epochs{keep}: each start "
        f"costs {each_s:.3g} s, every {every} steps."
    )
    evidence = {
        "each_s": each_s, "every_steps": start.every, "starts": start.count, "workers": view.workers,
        "made": count, "constructing_s": anew_s, **(view.stack_evidence(book) if heavy else {}),
    }  # fmt: skip
    return view.finding(
        CAUSE, start.per_step_s + anew_s, advice, lines, detail=f"{what} made every {every} steps",
        phase="residual" if heavy else "data_wait", evidence=evidence, ablation=None if heavy else "data",
    )  # fmt: skip
