"""What is told at the end of a run: moves that did not do what the plan says, and processes that went without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hotlap.plan.knobs import by_hand
from hotlap.records.plan import Plan
from hotlap.records.rows import Mark
from hotlap.records.timeline import Timeline

__all__ = ["applied_lines", "unwatched_lines"]

MOST_NAMED = 8
"""Ranks and processes that are named; of more, how many."""


def applied_lines(plan: Plan, command: list[str], timeline: Timeline | None, timeline_dir: Path) -> list[str]:
    """One line per move that did not do what the plan says, on whichever rank; one in all when all were applied."""
    if timeline is None:
        errors = _errors(timeline_dir)
        why = next(iter(errors), "no optimiser step was seen.")
        return [f"the plan was not applied: {why}"]
    lines = by_hand(plan.moves, command)
    for move in plan.moves:
        if not move.is_knob:
            lines += _of_lever(move.lever, [timeline, *timeline.ranks])
    what = "the plan's move was" if len(plan.moves) == 1 else f"all {len(plan.moves)} moves of the plan were"
    lines = lines or [f"{what} applied over {timeline.n_steps} steps."]
    return lines + unwatched_lines(timeline, timeline_dir)


def unwatched_lines(timeline: Timeline | None, timeline_dir: Path) -> list[str]:
    """Processes that could not be attached to: the whole run where none was, else each Python below the command that
    imported torch, a helper of the script as well as a rank."""
    errors = _errors(timeline_dir)
    if timeline is None:
        return [f"the run was not watched: {why}" for why in list(errors)[:1]]
    lines = []
    for why, pids in errors.items():
        were = "was" if len(pids) == 1 else "were"
        lines.append(f"{_listed('process', 'processes', pids)} {were} not watched: {why}")
    return lines


def _errors(timeline_dir: Path) -> dict[str, list[str]]:
    """Process ids by what went wrong there (``call.json.412.error``)."""
    found: dict[str, list[str]] = {}
    for path in sorted(timeline_dir.glob("*.error")):
        found.setdefault(path.read_text().strip(), []).append(path.name.split(".")[-2])
    return found


def _of_lever(lever: str, ranks: Sequence[Timeline]) -> list[str]:
    """Nothing where it was applied. A rank that had nothing to change and gives no reason is told only where all were
    so: validations and checkpoints are often one rank's alone."""
    states: dict[tuple[str, str], list[int]] = {}
    for timeline in ranks:
        mark = _last(timeline, lever)
        state, why = ("no-effect", "") if mark is None else (mark.state, mark.why)
        states.setdefault((state, why), []).append(timeline.header.rank)
    applied = any(state == "applied" for state, _ in states)
    lines = []
    for (state, why), numbers in states.items():
        where = "" if len(numbers) == len(ranks) else f" on {_listed('rank', 'ranks', numbers)}"
        if state == "no-effect" and (why or not applied):
            lines.append(f"{lever}: no effect{where} ({why or 'it found nothing to change in this run'})")
        elif state not in ("no-effect", "applied"):
            there = " there" if where else ""
            lines.append(f"{lever}: {state}{where}, {why}; the run went on without it{there}")
    return lines


def _last(timeline: Timeline, lever: str) -> Mark | None:
    return next((m for m in reversed(timeline.mark) if m.kind == "lever" and m.id == lever), None)


def _listed(one: str, many: str, names: Sequence[object]) -> str:
    if len(names) > MOST_NAMED:
        return f"{len(names)} {many}"
    told = [str(name) for name in names]
    return f"{one} {told[0]}" if len(told) == 1 else f"{many} {', '.join(told[:-1])} and {told[-1]}"
