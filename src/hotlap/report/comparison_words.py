"""The sentences of a comparison, and how its values are written."""

from __future__ import annotations

from typing import Any

from hotlap.records.comparison import Change, Comparison, MoveChange
from hotlap.report import units, words

__all__ = ["change_name", "change_values", "setting_words", "speedup_words", "verdict"]

COMMIT_DIGITS = 10
MOST = 0.5
"""Part of the whole change from which one phase is named with it."""
MISSING = {"packages": "not installed", "command": "not given", "levers": "not applied"}
"""What None means, by group; elsewhere it is not set."""


def verdict(comparison: Comparison) -> str:
    """One sentence: B against A."""
    step = comparison.step
    if step is None:
        return _plans_verdict(comparison.moves)
    a, b = comparison.a, comparison.b
    if any(warning.kind == "batch" for warning in comparison.warnings):
        if a.samples_per_s and b.samples_per_s:
            rates = f"{units.per_s(b.samples_per_s)} samples/s, {units.per_s(a.samples_per_s)} in A"
            return f"B has {units.ratio(b.samples_per_s / a.samples_per_s)} the throughput of A: {rates}."
        return "The steps of A and B are not the same amount of work, so that no verdict is given."
    times = f"{units.seconds(step.b_s)} per step, {units.seconds(step.a_s)} in A"
    if not step.clear or step.ratio is None:
        return f"No difference that two single runs could show: {times} ({units.ratio(step.ratio)} the time)."
    if step.ratio > 1:
        return f"B is slower: {times}, {units.ratio(step.ratio)} the time{_mostly(comparison)}."
    return f"B is faster: {times}, {units.ratio(1 / step.ratio)} the throughput{_mostly(comparison)}."


def _mostly(comparison: Comparison) -> str:
    """The phase that makes most of the difference, if one does."""
    whole = comparison.step.change_s if comparison.step is not None else None
    first = next((p for p in comparison.phases if p.clear and p.change_s is not None), None)
    if whole is None or first is None or first.change_s is None or first.change_s / whole < MOST:
        return ""
    return f", mostly in {words.phase_name(first.name)} ({units.signed_milliseconds(first.change_s)} ms)"


def _plans_verdict(moves: list[MoveChange]) -> str:
    states = [move.state for move in moves]
    told = [
        (states.count("only a"), "only in A"),
        (states.count("only b"), "only in B"),
        (states.count("setting"), "with another setting"),
        (states.count("preserves"), "that preserve something else"),
    ]
    found = [f"{n} {what}" for n, what in told if n]
    same = states.count("same")
    if not found:
        return f"Both plans make the same {_moves(same)}." if moves else "Both plans are empty."
    return f"The plans differ: {_moves(len(moves))} in all, {', '.join(found)}, {same} the same."


def _moves(count: int) -> str:
    return f"{count} move{'' if count == 1 else 's'}"


def change_name(change: Change) -> str:
    """``loader_num_workers`` -> ``loader num workers``; names of files, packages and variables stay as they are."""
    if change.group not in ("settings", "machine"):
        return change.what
    return words.quantity(change.what, 0)[0]


def change_values(change: Change) -> tuple[str, str]:
    """Both values as one reads them."""
    return _value(change, change.a), _value(change, change.b)


def _value(change: Change, value: Any) -> str:
    if isinstance(value, dict):
        return words.setting_text(value) or "applied"
    if value is None:
        return MISSING.get(change.group, "not set" if change.what != "branch" else "none")
    if isinstance(value, list):
        return ", ".join(str(part) for part in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if change.what == "commit":
        return str(value)[:COMMIT_DIGITS]
    return words.quantity(change.what, value)[1]


def setting_words(move: MoveChange) -> str:
    """The setting, or both where they differ."""
    texts = [words.setting_text(m.setting) or "no setting" for m in (move.a, move.b) if m is not None]
    if move.state == "preserves" and move.a is not None and move.b is not None:
        return f"{texts[0]}; preserves {move.a.preserves} -> {move.b.preserves}"
    return " -> ".join(dict.fromkeys(texts)) if texts != ["no setting"] * len(texts) else ""


def speedup_words(ratio: float | None, low: float | None, high: float | None) -> str:
    """A plan's recorded speedup."""
    return f"speedup {units.ratio_interval(ratio, low, high)}" if ratio is not None else "no speedup recorded"
