"""Losses of both arms over paired seeds, for the verdict on quality."""

from __future__ import annotations

import math

from hotlap.lap.search import Search
from hotlap.lap.session import Session
from hotlap.records.trials import Trial
from hotlap.trial.arm import Arm
from hotlap.trial.budget import Budget
from hotlap.trial.single import run_until

__all__ = ["loss_curves"]

QUALITY_SHARE = 0.97
"""Share of the budget by which the seeds must be done."""
START_S = 4.5
"""Launch to first step, where it was not measured."""
MIN_STEPS = 12
"""Fewer steps say nothing about a loss."""
MAX_STEPS = 400


def loss_curves(
    session: Session, state: Search, trial: Trial, step_s: float, ratio: float
) -> dict[str, list[list[float]]]:
    """Per arm one loss curve per seed. The first pair comes from the trial, unless that trained on replayed batches.

    ``step_s``: the unmodified script's; ``ratio``: how many times faster the plan is. The arms of a seed run one after
    the other: side by side, they would fight for the cores. All seeds get as many steps as the budget allows.
    """
    curves: dict[str, list[list[float]]] = {"baseline": [], "candidate": []}
    seeds = list(range(session.options.seeds))
    if not state.replayed and trial.losses.get("baseline") and trial.losses.get("candidate"):
        curves["baseline"].append(trial.losses["baseline"])
        curves["candidate"].append(trial.losses["candidate"])
        seeds = seeds[1:]
        if all(move.preserves == "bits" for move in state.moves):
            return curves  # equal or not: one pair shows it
    start_s = max([START_S, *trial.startup_s.values()])
    for done, seed in enumerate(seeds):
        left = session.left_s(QUALITY_SHARE) / (len(seeds) - done)
        steps = int((left - 2 * start_s) / (step_s * (1 + 1 / ratio)))
        steps = min(steps, MAX_STEPS, *(len(c) for c in curves["baseline"]))
        if steps < MIN_STEPS:
            break
        pair = [_run(session, seed, steps, left, label, state) for label in curves]
        if min(len(c) for c in pair) < MIN_STEPS:
            break
        for label, losses in zip(curves, pair, strict=True):
            curves[label].append(losses)
    return curves


def _run(session: Session, seed: int, steps: int, seconds: float, label: str, state: Search) -> list[float]:
    session.stage = f"proof: quality, seed {seed + 1}"
    moves = state.moves if label == "candidate" else []
    arm = session.arm(f"seed{seed + 1}-{label}", moves=moves, seed_offset=seed)
    try:
        run_until(arm, Budget(), steps=steps, seconds=seconds, on_progress=session.on_progress)
        return _losses(arm)
    finally:
        session.discard(arm)


def _losses(arm: Arm) -> list[float]:
    """Last loss given to backward in each step, as far as every step has its own row."""
    timeline = arm.read()
    losses: list[float] = []
    for row in timeline.step if timeline is not None else []:
        if row.n != 1 or not row.l:
            break
        last = row.l[-1]
        losses.append(math.nan if last is None else last)  # JSON has no NaN: a loss that was not finite is null
    return losses
