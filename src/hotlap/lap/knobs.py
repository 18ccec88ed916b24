"""The user's knobs in a lap: which can be tried here, and how a value that paid takes its place in the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hotlap.lap.session import Session
from hotlap.records.findings import Findings
from hotlap.records.knob import Knob
from hotlap.records.plan import Move
from hotlap.records.trials import Interval, LeverResult

__all__ = ["keep_move", "usable"]


def usable(session: Session, findings: Findings) -> tuple[list[Knob], list[tuple[str, str]]]:
    """The knobs that can be tried here, and (knob, reason) for the others."""
    found, refused = [], []
    for knob in session.options.knobs:
        if findings.throughput.samples_per_s is None:
            why = "the samples of a step are not known here, and a knob is measured in samples per second."
            refused.append((knob.id, why))
        elif knob.file and session.sandbox is None:
            why = f"without a sandbox {knob.file} itself would have to be changed, and your files are not touched."
            refused.append((knob.id, why))
        else:
            found.append(knob)
    return found, refused


def keep_move(moves: Sequence[Move], results: list[LeverResult], move: Move, interval: Interval) -> list[Move]:
    """The plan with ``move`` at its end. A value that the same knob had before gives way, also in ``results``.

    The knob's gain is then the product of both trials: each value was measured against the one before.
    """
    low, ratio, high = interval.low, interval.ratio, interval.high
    before = next((m for m in moves if m.lever == move.lever), None)
    if before is not None:
        low, ratio, high = low * (before.low or 1.0), ratio * (before.gain or 1.0), high * (before.high or 1.0)
        for index, result in enumerate(results):
            if result.id == move.lever and result.kept:
                reason = f"{result.reason}: it paid, and {move.setting['value']} paid more"
                results[index] = replace(result, kept=False, reason=reason, cumulative=None)
    kept = replace(move, gain=ratio, low=low, high=high)
    return [*(m for m in moves if m.lever != move.lever), kept]
