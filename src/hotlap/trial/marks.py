"""What an arm's rows say besides its steps: what the levers did, how the loader is set up, the losses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Literal

from hotlap.records.rows import Mark
from hotlap.trial.arm import Arm

__all__ = ["NOTHING_YET", "changes", "common_losses", "last_words", "losses", "refusal", "took_hold", "verdict"]

Verdict = Literal["failed", "no-effect", "refused"]
NOTHING_YET = "it found nothing to change"
"""Of levers that have not said why: they may still find something."""


def last_words(arm: Arm) -> dict[str, list[Mark]]:
    """Per lever: the last word of each process on it."""
    found: dict[str, dict[Path, Mark]] = {}
    for tail in arm.tails():
        for mark in tail.marks:
            if mark.kind == "lever":
                found.setdefault(mark.id, {})[tail.path] = mark
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
    """The levers that have changed something in one process or another."""
    return {
        lever
        for lever, said in last_words(arm).items()
        if any(mark.state == "applied" or mark.count for mark in said if mark.state != "failed")
    }


def changes(candidate: Arm, incumbent: Arm) -> int:
    """How many things the levers on trial have changed."""
    words = last_words(candidate)
    return sum(mark.count for lever in on_trial(candidate, incumbent) for mark in words.get(lever, []))


def losses(arm: Arm) -> list[float]:
    """Loss of each step of the first start, from step 0 on, up to the first one that is not known."""
    return [value for value, _ in _losses(arm)]


def common_losses(arms: Mapping[str, Arm]) -> tuple[dict[str, list[float]], dict[str, list[int]]]:
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


def _losses(arm: Arm) -> list[tuple[float, int]]:
    """(loss, samples) of each step of the first start."""
    trainers = arm.trainers()
    values: list[tuple[float, int]] = []
    for row in trainers[0].steps if trainers else []:
        if row.n != 1 or row.i != len(values) or not row.l or row.l[-1] is None:
            break
        values.append((row.l[-1], row.s))
    return values
