"""Everything measured about a plan, put together into the proof that ``hotlap speedup`` can vouch for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hotlap.proof.curves import numbers
from hotlap.proof.noninferior import MIN_STEPS, Losses, judge, listed
from hotlap.proof.same import first_difference
from hotlap.proof.time_to_quality import time_to_loss
from hotlap.records.plan import PRESERVES, Move
from hotlap.records.proof import Proof, Quality
from hotlap.records.trials import Trial

__all__ = ["prove", "same_bits", "strictness"]


def strictness(moves: Sequence[Move]) -> str:
    """What the moves together preserve: the loosest of them (``bits`` when there are none)."""
    return max((move.preserves for move in moves), key=PRESERVES.index, default="bits")


def same_bits(baseline: Losses, candidate: Losses, uncertain: str = "", whole: bool = False) -> Quality:
    """Whether the losses of each pair of runs (one per seed) are equal bit for bit.

    ``uncertain``: why it is not known whether the script repeats its own; then bits that differ refute nothing.
    ``whole``: these are all losses of runs that went to their end; otherwise few equal ones prove nothing (the first
    comes before any update).
    """
    pairs = list(zip(baseline, candidate, strict=False))
    steps = min((min(len(a), len(b)) for a, b in pairs), default=0)
    raw = {"baseline": listed([a for a, _ in pairs]), "candidate": listed([b for _, b in pairs])}
    if steps == 0:
        return Quality("not proved", "bits", "No losses were seen in both arms: nothing to compare.", seeds=len(pairs))
    differ = [step for a, b in pairs if (step := first_difference(a, b)) is not None]
    if differ:
        first = min(differ)
        text = f"The plan promises the same bits, but losses differ from step {first} on."
        found = Quality("refuted", "bits", text, seeds=len(pairs), steps=steps, first_difference=first, raw=raw)
        if uncertain:
            return dataclasses.replace(found, verdict="not proved", summary=f"{text} {uncertain}")
        return found
    text = f"Losses are equal bit for bit over {steps} steps."
    if steps < MIN_STEPS and not whole:
        text = f"{text} {MIN_STEPS} are the least to tell by."
        return Quality("not proved", "bits", text, seeds=len(pairs), steps=steps, raw=raw)
    return Quality("proved", "bits", text, 0.0, 0.0, 0.0, seeds=len(pairs), steps=steps, time_to_loss=None, raw=raw)


def prove(
    trial: Trial | None,
    moves: Sequence[Move],
    baseline: Losses = (),
    candidate: Losses = (),
    margin_frac: float | None = None,
    repeats: bool = True,
    uncertain: str = "",
) -> Proof:
    """The proof of a plan of ``moves``.

    ``trial``: unmodified script against the plan. ``baseline`` and ``candidate``: loss curves per seed, the same seeds
    in the same order (the baseline may have more); the trial's own losses stand in when these are empty. Moves that all
    preserve bits owe equal bits, where the script ``repeats`` its own (``uncertain``: why that is not known); moves
    that draw other random numbers are judged unpaired.
    """
    interval = trial.interval if trial is not None else None
    notes: list[str] = [] if trial is None else list(trial.notes)
    if trial is not None and trial.status != "measured":
        notes.append(f"The final trial ended as {trial.status}: {trial.reason}")
    if not baseline and not candidate and trial is not None:
        baseline, candidate = (
            [numbers(trial.losses[arm])] if trial.losses.get(arm) else [] for arm in ("baseline", "candidate")
        )
    if not moves:
        nothing = Quality("not proved", "none", "No move was kept: there is nothing to prove.")
        return Proof(interval, nothing, False, notes=notes)
    preserves = strictness(moves)
    if preserves == "bits" and repeats:
        quality = same_bits(baseline, candidate, uncertain)
    else:
        quality = judge(baseline, candidate, margin_frac, paired=preserves in ("bits", "maths"))
        asked = quality.verdict != "refuted" or preserves == "goal"  # worse at equal samples may still be sooner there
        if interval is not None and asked:
            quality = dataclasses.replace(quality, time_to_loss=time_to_loss(baseline, candidate, interval.ratio))
    claimed = interval is not None and interval.low > 1.0
    return Proof(interval, quality, claimed, notes=notes)
