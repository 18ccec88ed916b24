"""validation-cadence: validation takes a large share of the run."""

from __future__ import annotations

from typing import Any

from hotlap.diagnose.cadence import cadence_advice, cadence_evidence
from hotlap.diagnose.host import step_functions
from hotlap.diagnose.validating import metric_lines, validation_parts, validation_settings
from hotlap.diagnose.view import View
from hotlap.records.findings import Finding, Where

CAUSE = "validation-cadence"


def _more(view: View, parts: dict[str, float], loader: dict[str, int | None]) -> str:
    """What else would make one validation shorter, by what it spends its time on."""
    most = view.policy.validation_part
    if parts.get("metrics_frac", 0.0) >= most:
        lines = metric_lines(view)
        at = f" ({lines[0].file}:{lines[0].line})" if lines else ""
        return f" Most of it computes metrics{at}: do that once at its end, on the device."
    if parts.get("loading_frac", 0.0) >= most:
        workers = loader.get("num_workers")
        return (
            f" Most of it loads samples{f', with {workers} workers' if workers is not None else ''}: give it workers."
        )
    batch, training = loader.get("batch_size"), view.times.samples
    if view.on_device and batch and training and batch <= training:
        return f" It needs no gradients: batches larger than {batch} fit."
    return ""


def _in_the_step_first(view: View) -> list[Where]:
    """Where validations began: the call in the function that runs the steps, which decides how often, comes first."""
    stepping = step_functions(view)
    return sorted(view.event_where("validation"), key=lambda w: (w.file, w.function) not in stepping)


def find(view: View) -> Finding | None:
    """Validation's cost at its own cadence; where a framework was told the cadence, that line comes first."""
    work = view.times.validation
    where = [*view.option_where(CAUSE), *_in_the_step_first(view)][: view.policy.max_where]
    at = f" at {where[0].file}:{where[0].line}" if where else ""
    every = f"every {work.every:.0f} steps" if work.every else "in the steps seen"
    parts, loader = validation_parts(view), validation_settings(view)
    evidence: dict[str, Any] = {**cadence_evidence(view, work), **parts, **loader}
    evidence |= view.stack_evidence(view.stacks.phase("validation"))
    return view.finding(
        CAUSE, view.seconds("validation"),
        f"Validate less often, or on part of the data{at}: one validation takes {work.each_s:.3g} s {every}"
        f"{cadence_advice(view, work)}.{_more(view, parts, loader)}", where,
        detail=every, phase="validation", evidence=evidence, ablation="validation",
    )  # fmt: skip
