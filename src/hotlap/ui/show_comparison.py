"""Two runs side by side: the words of ``hotlap compare``, in tables."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from hotlap.records.comparison import Amount, Change, Compared, Comparison
from hotlap.report import comparison_words, units, words
from hotlap.report.comparison import MOST_CHANGES
from hotlap.report.keep import command_text

__all__ = ["shown"]


def shown(found: Comparison) -> dict[str, Any]:
    """For the template."""
    step = [_amount("step", found.step)] if found.step is not None else []
    return {
        "sides": [_side("A", found.a), _side("B", found.b)],
        "warnings": [warning.text for warning in found.warnings],
        "verdict": comparison_words.verdict(found),
        "phases": [_amount(words.phase_name(phase.name), phase) for phase in found.phases] + step,
        "causes": [_amount(cause.name, cause) for cause in found.causes],
        "changes": [_group(group, list(changes)) for group, changes in groupby(found.changes, lambda c: c.group)],
        "moves": [(move.lever, move.state, comparison_words.setting_words(move)) for move in found.moves],
        "notes": found.notes,
    }


def _side(label: str, side: Compared) -> dict[str, Any]:
    facts = [side.kind, words.throughput_text(side.samples_per_s, side.steps_per_s)]
    if side.batch is not None:
        facts.append(f"batch {units.tick(side.batch)}")
    facts.append(f"{units.count(side.steady_steps)} steps")
    return {"label": label, "name": side.name, "script": side.script, "facts": " · ".join(facts),
            "command": command_text(side.command), "started": side.started or ""}  # fmt: skip


def _amount(name: str, amount: Amount) -> dict[str, str]:
    where = amount.where
    place = f"{words.place(where)} {where.function}".strip() if where is not None and where.file else ""
    change = amount.change_s or 0.0
    return {
        "name": name,
        "a": units.milliseconds(amount.a_s),
        "b": units.milliseconds(amount.b_s),
        "change": units.signed_milliseconds(amount.change_s),
        "ratio": units.ratio(amount.ratio),
        "css": "" if not amount.clear else "slower" if change > 0 else "quicker",
        "unclear": "" if amount.clear else "~",
        "detail": " · ".join(part for part in (place, amount.detail) if part),
    }


def _group(group: str, changes: list[Change]) -> dict[str, Any]:
    rows = [(comparison_words.change_name(c), *comparison_words.change_values(c)) for c in changes[:MOST_CHANGES]]
    return {"name": group, "rows": rows, "more": max(0, len(changes) - MOST_CHANGES)}
