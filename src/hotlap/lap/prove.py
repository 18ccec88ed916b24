"""The proof of a lap: the unmodified script against the plan, once more, and their losses over seeds."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from hotlap.lap.baseline import Baseline
from hotlap.lap.measure import Question, measure
from hotlap.lap.roof import measure_roof
from hotlap.lap.search import Search
from hotlap.lap.session import Session
from hotlap.proof.verdict import prove
from hotlap.records.plan import Move
from hotlap.records.proof import Proof
from hotlap.records.timeline import Timeline
from hotlap.records.trials import Trial
from hotlap.trial.budget import Budget
from hotlap.trial.single import run_until

__all__ = ["final_proof"]

MEASURE_S = 22.0
QUALITY_SHARE = 0.97
"""Share of the budget by which the seeds must be done."""
MIN_QUALITY_STEPS = 12


def final_proof(session: Session, baseline: Baseline, state: Search) -> tuple[Proof, Trial]:
    """Measure the whole plan against the unmodified script and judge quality over paired seeds."""
    session.stage = "proof: speed"
    seconds = min(MEASURE_S, max(8.0, session.left_s(0.88)))
    trial = measure(session, baseline.arm, state.incumbent, Question("proof", seconds, precision=0.015))
    share = _share_of_roof(session, state)
    session.discard(baseline.arm)
    session.discard(state.incumbent)
    curves = _seeds(session, state, trial)
    now = baseline.findings.throughput.samples_per_s
    ratio = trial.interval.ratio if trial.interval is not None else None
    proof = prove(
        trial,
        state.moves,
        curves["baseline"],
        curves["candidate"],
        margin_frac=session.options.margin,
        samples_per_s=now * ratio if now is not None and ratio is not None else None,
        roof_share=share,
    )
    return proof, trial


def _share_of_roof(session: Session, state: Search) -> float | None:
    """The plan beside the roof of its own numeric levers: the share that counts, measured at the end."""
    roof, trial = measure_roof(session, state.incumbent, state.findings, state.moves)
    state.trials.append(trial)
    return None if roof is None else roof.share


def _seeds(session: Session, state: Search, trial: Trial) -> dict[str, list[list[float]]]:
    """Loss curves per arm and seed. The first pair comes from the trial, unless that trained on replayed batches."""
    curves: dict[str, list[list[float]]] = {"baseline": [], "candidate": []}
    first = 1
    if not state.replayed and trial.losses.get("baseline") and trial.losses.get("candidate"):
        curves["baseline"].append(trial.losses["baseline"])
        curves["candidate"].append(trial.losses["candidate"])
    else:
        first = 0
    seeds = range(first, max(session.options.seeds, 1 if not first else 0))
    if all(m.preserves == "bits" for m in state.moves) and first:
        return curves  # equal or not: one pair of curves shows it
    for seed in seeds:
        left = session.left_s(QUALITY_SHARE) / max(1, len(seeds) - (seed - first))
        pair = _pair(session, state.moves, seed, left, len(trial.losses.get("baseline", [])) or 60)
        if pair is None:
            break
        curves["baseline"].append(pair[0])
        curves["candidate"].append(pair[1])
    return curves


def _pair(
    session: Session, moves: Sequence[Move], seed: int, seconds: float, steps: int
) -> tuple[list[float], list[float]] | None:
    """Both arms of one seed side by side: their speed does not matter here, so they share the cores."""
    if seconds < 6.0:
        return None
    session.stage = f"proof: quality, seed {seed + 1}"
    arms = (
        session.arm(f"seed{seed}-baseline", seed_offset=seed),
        session.arm(f"seed{seed}-candidate", moves=moves, seed_offset=seed),
    )
    until = time.monotonic() + seconds
    for arm in arms:
        arm.start()

    for arm in arms:
        seconds_left = max(0.5, until - time.monotonic())
        run_until(arm, Budget(), steps=steps, seconds=seconds_left, on_progress=session.on_progress)
    losses = [_losses(session.timeline(arm)) for arm in arms]
    for arm in arms:
        session.discard(arm)
    n = min(len(losses[0]), len(losses[1]))
    return None if n < MIN_QUALITY_STEPS else (losses[0][:n], losses[1][:n])


def _losses(timeline: Timeline | None) -> list[float]:
    """Last loss given to backward in each step, as far as every step has its own row."""
    losses: list[float] = []
    for row in timeline.step if timeline is not None else []:
        if row.n != 1 or not row.l:
            break
        last = row.l[-1]
        losses.append(math.nan if last is None else last)  # JSON has no NaN: a loss that was not finite is null
    return losses
