"""What a validation spends its time on, by its stacks: loading, the model, or the metrics."""

from __future__ import annotations

from hotlap.diagnose.kinds import in_loader
from hotlap.diagnose.stacks import Sampled
from hotlap.diagnose.view import View
from hotlap.records.findings import Where

__all__ = ["metric_lines", "validation_parts", "validation_settings"]


def _part(sample: Sampled) -> str:
    if any(in_loader(frame) for frame in sample.frames):
        return "loading"
    inside = any(f.func == "forward" or "torch/nn/modules/" in f.file.replace("\\", "/") for f in sample.frames)
    return "forward" if inside else "metrics"


def validation_parts(view: View) -> dict[str, float]:
    """Part of the validation's samples by kind; empty when none was taken."""
    book = view.stacks.phase("validation")
    total = book.total()
    if not total:
        return {}
    kinds = ("loading", "forward", "metrics")
    return {f"{kind}_frac": book.where(lambda s, k=kind: _part(s) == k).total() / total for kind in kinds}  # type: ignore[misc]


def metric_lines(view: View) -> list[Where]:
    """The user's lines that compute metrics in a validation."""
    return view.stacks.phase("validation").where(lambda s: _part(s) == "metrics").lines(view.policy.max_where)


def validation_settings(view: View) -> dict[str, int | None]:
    """Batch size and workers of the loader that validates, the largest one when there are several."""
    rows = [row.value for row in view.setting_rows("loader") if row.value.get("training") is False]
    if not rows:
        return {}
    largest = max(rows, key=lambda value: value.get("dataset_len") or 0)
    return {"batch_size": largest.get("batch_size"), "num_workers": largest.get("num_workers")}
