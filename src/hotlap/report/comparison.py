"""What ``hotlap compare`` prints: both sides, what speaks against comparing them, then changes, largest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from hotlap import __version__
from hotlap.records.codec import encode
from hotlap.records.comparison import Amount, Change, Compared, Comparison, MoveChange
from hotlap.report import comparison_words, units, words
from hotlap.report.data import finite_only
from hotlap.report.layout import Lines, folded, pad, rule, spread, wrapped

__all__ = ["comparison", "to_json"]

COLUMN = 9
COLUMNS = "A ms     B ms   change    B / A"
MOST_CHANGES = 12
"""Of one group; a new environment changes hundreds of packages."""
GROUP_WIDTH = 10
SMALL_FRAC = 0.02
"""Share of the step below which a phase that did not change is not shown."""


def comparison(found: Comparison) -> Lines:
    """Two runs, or two plans."""

    def build(width: int) -> Iterable[Text]:
        for label, side in (("A", found.a), ("B", found.b)):
            yield from _side(label, side, width)
        for warning in found.warnings:
            yield from wrapped(f"! {warning.text}", width, " ", "yellow")
        yield from wrapped(comparison_words.verdict(found), width, " ", "bold")
        if found.step is not None:
            yield from _phases(found, found.step, width)
            yield from _causes(found, width)
            yield from _changes(found, width)
        if found.moves:
            yield from _moves(found, width)
        for note in found.notes:
            label, _, rest = note.partition(":  ")
            if rest:  # a command to copy
                yield from folded(f" {label}: ", rest, width, "cyan")
            else:
                yield from wrapped(f"note: {note}", width, " ", "dim")

    return Lines(build)


def to_json(found: Comparison) -> dict[str, Any]:
    """The comparison as plain JSON values, with its verdict and the version that wrote it."""
    data: dict[str, Any] = finite_only(encode(found))
    head = {"schema": data.pop("schema"), "hotlap": __version__, "verdict": comparison_words.verdict(found)}
    return head | data


def _side(label: str, side: Compared, width: int) -> list[Text]:
    left = f"{label}  {side.name}"
    if side.kind == "plan":
        facts = [
            comparison_words.speedup_words(side.speedup, side.low, side.high),
            side.machine or "",
            side.started or "",
        ]
        return spread(left, " · ".join(fact for fact in facts if fact), width)
    facts = [side.kind, words.throughput_text(side.samples_per_s, side.steps_per_s)]
    if side.batch is not None:
        facts.append(f"batch {units.tick(side.batch)}")
    facts.append(f"{units.count(side.steady_steps)} steps")
    return spread(left, " · ".join(facts), width)


def _row(name: str, amount: Amount, width: int, style: str = "") -> Text:
    cells = [
        units.milliseconds(amount.a_s),
        units.milliseconds(amount.b_s),
        units.signed_milliseconds(amount.change_s),
        units.ratio(amount.ratio),
    ]
    numbers = "".join(pad(cell, COLUMN, right=True) for cell in cells)
    mark = " " if amount.clear else "~"
    line = Text(f" {mark} " + pad(name, width - 3 - cell_len(numbers)), style)
    return line.append(numbers, style)


def _phases(found: Comparison, step: Amount, width: int) -> Iterable[Text]:
    yield rule("by phase, per step", width, COLUMNS)
    small = 0
    for phase in found.phases:
        if not phase.clear and _share(phase.a_s, step.a_s) < SMALL_FRAC and _share(phase.b_s, step.b_s) < SMALL_FRAC:
            small += 1
            continue
        yield _row(words.phase_name(phase.name), phase, width, _style(phase))
    yield _row("step", step, width, "bold")
    few = f"{small} phase{'' if small == 1 else 's'} below {units.share(SMALL_FRAC)} of the step not shown"
    told = ["~ no clear change"] if any(not phase.clear for phase in found.phases) else []
    if step.scatter_s is not None:
        told.append(f"scatter within the runs ± {units.seconds(step.scatter_s)} per step")
    told += [few] if small else []
    told.append("whatever else the machine did during either run is in these numbers")
    yield from wrapped("; ".join(told), width, "   ", "dim")


def _share(part: float | None, whole: float | None) -> float:
    return part / whole if part is not None and whole else 0.0


def _style(amount: Amount) -> str:
    if not amount.clear:
        return "dim"
    return "red" if (amount.change_s or 0.0) > 0 else "green"


def _causes(found: Comparison, width: int) -> Iterable[Text]:
    shown = [cause for cause in found.causes if cause.clear]
    if not shown:
        same = ", ".join(cause.name for cause in found.causes)
        if same:
            yield from wrapped(f"Causes, none clearly changed: {same}", width, " ", "dim")
        return
    yield rule("by cause, per step", width, COLUMNS)
    for cause in shown:
        yield _row(cause.name + _state(cause), cause, width, _style(cause))
        where = cause.where
        place = f"{words.place(where, width // 2)}  {where.function}  " if where is not None else ""
        if place or cause.detail:
            yield Text("      " + pad(f"{place}{cause.detail}", width - 6), "dim")
    rest = ", ".join(cause.name for cause in found.causes if not cause.clear)
    told = [f"no clear change, or not known: {rest}"] if rest else []
    yield from wrapped("; ".join(["causes may overlap", *told]), width, "   ", "dim")


def _state(cause: Amount) -> str:
    return "  not in A" if cause.a_s is None else "  not in B" if cause.b_s is None else ""


def _changes(found: Comparison, width: int) -> Iterable[Text]:
    yield rule("what else is not the same", width, "A -> B")
    if not found.changes:
        yield from wrapped("Nothing that both runs recorded.", width, "   ")
    for group, members in groupby(found.changes, key=lambda change: change.group):
        yield from _group(group, list(members), width)


def _group(group: str, changes: Sequence[Change], width: int) -> Iterable[Text]:
    shown = changes[:MOST_CHANGES]
    names = [comparison_words.change_name(change) for change in shown]
    room = min(max(cell_len(name) for name in names), width // 3)
    for n, (change, name) in enumerate(zip(shown, names, strict=True)):
        label = group if n == 0 else ""
        old, new = comparison_words.change_values(change)
        head = f"   {pad(label, GROUP_WIDTH)} {pad(name, room)}  "
        yield from folded(head, f"{old} -> {new}", width, "")
    if len(changes) > len(shown):
        left = len(changes) - len(shown)
        yield Text(f"   {'':<{GROUP_WIDTH}} and {left} more, which --json FILE lists", "dim")


def _moves(found: Comparison, width: int) -> Iterable[Text]:
    """The moves of both plans; of two runs, of the plans that they ended with."""
    yield rule("moves" if found.of == "plans" else "moves of the plans that they found", width, "A        B")
    marks = {"same": "=", "setting": "~", "preserves": "~", "only a": "-", "only b": "+"}
    for move in found.moves:
        gains = [units.ratio(m.gain) if m is not None else "" for m in (move.a, move.b)]
        cells = "".join(pad(gain, COLUMN, right=True) for gain in gains)
        head = f" {marks[move.state]} {move.lever}  "
        text = comparison_words.setting_words(move)
        line = Text(pad(head + text, width - cell_len(cells)) + cells, "dim" if move.state == "same" else "")
        if cell_len(head + text) > width - cell_len(cells):
            yield Text(pad(head, width - cell_len(cells)) + cells)
            yield from wrapped(text, width, " " * 6, "dim")
        else:
            yield line
    yield from wrapped(_legend(found.moves), width, " ", "dim")


def _legend(moves: Sequence[MoveChange]) -> str:
    states = {move.state for move in moves}
    words_ = [
        ("= the same in both", {"same"}),
        ("~ set otherwise", {"setting", "preserves"}),
        ("- only in A", {"only a"}),
        ("+ only in B", {"only b"}),
    ]
    return ", ".join(text for text, meant in words_ if meant & states) + "; ratios as each run recorded them"
