"""What the turns of a ladder say: time per step with all that belongs to it, factors, shares of the roof. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from loader_rounds import Turn, ratios

__all__ = ["PERIODIC", "completed", "figures", "whole_step_s"]

PERIODIC = ("epoch_start", "evaluate", "heavy", "checkpoint")
"""What comes round now and then: a turn has ``<name>_s``, how long it takes, and ``<name>_every_steps``."""


def whole_step_s(turn: Mapping[str, float]) -> float:
    """A step with its share of everything periodic."""
    return turn["step_s"] + sum(
        turn[f"{name}_s"] / turn[f"{name}_every_steps"] for name in PERIODIC if f"{name}_s" in turn
    )


def completed(turns: Sequence[Turn]) -> list[Turn]:
    """Turns with the throughputs that follow from them.

    Evaluations and checkpoints take long beside a step and are timed in an arm's first turn alone; later ones get that
    time, so that a turn's total is of the same parts.
    """
    periodic = {key: value for key, value in turns[0].items() if key.startswith(PERIODIC)}
    out = []
    for turn in turns:
        full = periodic | turn
        full["samples_per_s"] = full["samples"] / whole_step_s(full)
        full["steps_samples_per_s"] = full["samples"] / full["step_s"]
        full["roof_samples_per_s"] = full["samples"] / full["roof_step_s"]
        full["data_wait_frac"] = full["data_wait_s"] / full["step_s"]
        full["of_roof"] = full["samples_per_s"] / full["roof_samples_per_s"]
        full["steps_of_roof"] = full["steps_samples_per_s"] / full["roof_samples_per_s"]
        out.append(full)
    return out


def figures(names: Sequence[str], turns: Mapping[str, Sequence[Turn]]) -> list[dict[str, Any]]:
    """A row for each rung that was measured, in order: medians with lowest and highest, factor, cumulated factors.

    ``factor`` is over the rung before, ``cumulated`` over the first; both with everything periodic, round by round, and
    ``steps_cumulated`` of the steps alone.
    """
    rows: list[dict[str, Any]] = []
    full = {name: completed(turns[name]) for name in names if turns.get(name)}
    measured = list(full)
    for number, name in enumerate(measured):
        own, first, before = full[name], full[measured[0]], full[measured[max(0, number - 1)]]
        row: dict[str, Any] = {key: statistics.median(t[key] for t in own) for key in own[0]}
        row |= {"name": name, "turns": len(own)}
        for key in ("samples_per_s", "steps_samples_per_s", "of_roof", "steps_of_roof"):
            row[f"{key}_range"] = [f(t[key] for t in own) for f in (min, max)]
        row["factor"] = ratios(own, before, "samples_per_s")
        row["cumulated"] = ratios(own, first, "samples_per_s")
        row["steps_cumulated"] = ratios(own, first, "steps_samples_per_s")
        rows.append(row)
    return rows
