"""What an arm's rows say besides its steps: what the levers did, how the loader is set up, the losses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Literal

from hotlap.records.rows import Mark
from hotlap.trial.arm import Arm

__all__ = ["NOTHING_YET", "changes", "common_losses", "last_words", "refusal", "took_hold", "verdict"]

Verdict = Literal["failed", "no-effect", "refused"]
NOTHING_YET = "it found nothing to change"
"""Of levers that have not said why: they may still find something."""


def last_words(arm: Arm) -> dict[str, list[Mark]]:
    """Per lever: the last word of each process on it. Where it failed on some ranks alone, the reason names them."""
    found: dict[str, list[Mark]] = {}
    for lever, said in _said(arm).items():
        everywhere = all(mark.state == "failed" for mark, _ in said)
        found[lever] = [mark if everywhere else _with_rank(mark, rank) for mark, rank in said]
    return found


def _with_rank(mark: Mark, rank: int | None) -> Mark:
    named = rank is not None and mark.state == "failed"
    return replace(mark, why=f"on rank {rank}: {mark.why}") if named else mark


def _said(arm: Arm) -> dict[str, list[tuple[Mark, int | None]]]:
    """Per lever: the last word of each process, and its rank where there are several."""
    found: dict[str, dict[Path, tuple[Mark, int | None]]] = {}
    for tail in arm.tails():
        rank = tail.header.rank if tail.header is not None and tail.header.world > 1 else None
        for mark in tail.marks:
            if mark.kind == "lever":
                found.setdefault(mark.id, {})[tail.path] = mark, rank
    return {lever: list(words.values()) for lever, words in found.items()}


def on_trial(candidate: Arm, incumbent: Arm) -> set[str]:
    """The levers that the comparison is about: the one named, or those that only the candidate has."""
    if candidate.spec.lever is not None:
        return {candidate.spec.lever}
    return set(last_words(candidate)) - set(last_words(incumbent))


def verdict(candidate: Arm, incumbent: Arm) -> tuple[Verdict, str] | None:
    """Why the levers on trial cannot be measured, or None: one of them was applied somewhere, or none has spoken yet.

    A lever that treats validation or checkpoints (``ArmSpec.waits_for``) has nothing to change before the first one.
    """
    words = last_words(candidate)
    levers = on_trial(candidate, incumbent)
    said = [mark for lever in levers for mark in words.get(lever, [])]
    if not said or levers & took_hold(candidate):
        return None
    state, why = refusal(said)
    if state == "no-effect" and candidate.spec.waits_for - _kinds(candidate):
        return None
    return state, why


def refusal(said: Sequence[Mark]) -> tuple[Verdict, str]:
    """Why a lever has changed nothing, from the last words of each process on it."""
    for state in ("failed", "refused"):
        for mark in said:
            if mark.state == state:
                return state, mark.why or f"the lever was {state}"
    return "no-effect", next((mark.why for mark in said if mark.why), NOTHING_YET)


def _kinds(arm: Arm) -> set[str]:
    return {e.kind for run in arm.trainers() for e in run.events if e.kind in ("validation", "checkpoint")}


def took_hold(arm: Arm) -> set[str]:
    """The levers that have changed something in one process or another, and failed on none of several ranks: those
    would do something else than the others."""
    return {
        lever
        for lever, said in _said(arm).items()
        if any(mark.state == "applied" or mark.count for mark, _ in said if mark.state != "failed")
        and not any(mark.state == "failed" and rank is not None for mark, rank in said)
    }


def changes(candidate: Arm, incumbent: Arm) -> int:
    """How many things the levers on trial have changed."""
    words = last_words(candidate)
    return sum(mark.count for lever in on_trial(candidate, incumbent) for mark in words.get(lever, []))


def common_losses(arms: Mapping[str, Arm]) -> tuple[dict[str, list[float | None]], dict[str, list[int]]]:
    """Losses of each arm, and the samples of their steps, as far as all arms went: in samples, else in steps."""
    rows = {label: _losses(arm) for label, arm in arms.items()}
    if all(samples > 0 for found in rows.values() for _, samples in found):
        common = min(sum(samples for _, samples in found) for found in rows.values())
        lengths = {
            label: bisect_right(list(accumulate(samples for _, samples in found)), common)
            for label, found in rows.items()
        }
    else:
        lengths = dict.fromkeys(rows, min(len(found) for found in rows.values()))
    cut = {label: found[: lengths[label]] for label, found in rows.items()}
    return (
        {label: [value for value, _ in found] for label, found in cut.items()},
        {label: [samples for _, samples in found] for label, found in cut.items()},
    )


def _losses(arm: Arm) -> list[tuple[float | None, int]]:
    """(loss, samples) of each step of the first start. A loss that is NaN or infinite is None: such a training
    diverged, and what it was before proves nothing."""
    trainers = arm.trainers()
    values: list[tuple[float | None, int]] = []
    for row in trainers[0].steps if trainers else []:
        if row.n != 1 or row.i != len(values) or not row.l:
            break
        values.append((row.l[-1], row.s))
    return values
