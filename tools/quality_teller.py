"""What is told of a reference training's fast preset beside its slow one, over seeds."""

from __future__ import annotations

import statistics
from typing import Any

from result_values import value

from hotlap.report import units

__all__ = ["quality_rows"]

PRESETS = ("slow", "fast")


def quality_rows(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The verdict, each metric of the last evaluation with its spread over seeds, and the time that it took."""
    f = document["figures"]
    told, runs = f["verdict"], f["runs"]
    bounds = "" if told["upper"] is None else f" [{_points(told['lower'])}, {_points(told['upper'])}]"
    margin = f"margin {100 * told['margin']:.2g} points"
    found = [
        ("fast is worse by", f"{_points(told['worse'])}{bounds} points, {margin}: {told['verdict']} ({told['how']})")
    ]
    for metric in _metrics(runs):
        found += [(f"{metric}, {preset}", _over_seeds(runs[preset], metric)) for preset in PRESETS]
    sooner = f["time_to_quality"]
    reached = sum(at is not None for at in sooner["fast_s"])
    factor = "" if sooner["factor"] is None else f", {units.ratio(sooner['factor'])} sooner"
    found += [
        ("runs of fast that reach slow's quality", f"{reached} of {len(sooner['fast_s'])}{factor}"),
        ("fast over slow, wall time of a whole run", units.ratio(f["wall_factor"])),
        *((f"wall time, {p}", str(value("wall_s", [run["wall_s"] for run in runs[p]]))) for p in PRESETS),
        ("trained on", f"{f['data']}, {runs['slow'][0]['samples']} samples a run"),
    ]
    found += [("set for both alike", ", ".join(f["set"]))] if f["set"] else []
    return [*found, *([("remark", f["remark"])] if "remark" in f else [])]


def _metrics(runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Those of the last evaluations that are shares; a spread over folds and a norm of vectors judge nothing."""
    names = runs["slow"][0]["evaluations"][-1]
    return [name for name in names if name not in ("at_s", "step") and not name.endswith(("_std", "_xnorm"))]


def _over_seeds(runs: list[dict[str, Any]], metric: str) -> str:
    values = [run["evaluations"][-1][metric] for run in runs]
    mean, low, high = statistics.fmean(values), min(values), max(values)
    return f"{mean:.3f} [{low:.3f}, {high:.3f}] over {len(values)} seeds"


def _points(share: float) -> str:
    return f"{100 * share:+.2f}"
