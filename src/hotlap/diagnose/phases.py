"""Reading a step row by phase name. ``None`` stays None: not measured is not zero."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hotlap.records.rows import PHASES, Step

__all__ = ["PERIODIC", "core_ns", "mean_s", "measured_steps", "phase_alone", "phase_names", "phase_ns"]

PERIODIC = ("validation", "checkpoint")
"""Phases that come every so many steps rather than in each."""


def phase_names(header_phases: list[str]) -> list[str]:
    """The order of phases in this file (its header says; an empty header means the standard order)."""
    return header_phases or list(PHASES)


def phase_ns(row: Step, phase: str, phases: list[str]) -> int | None:
    """Nanoseconds of one phase in a row, never negative; None when it was not measured."""
    if phase not in phases:
        return None
    index = phases.index(phase)
    value = row.p[index] if index < len(row.p) else None
    return None if value is None else max(0, value)


def core_ns(rows: Sequence[Step], phases: list[str]) -> list[int]:
    """Nanoseconds of each row without validation, checkpoints and epoch starts."""
    columns = [phases.index(phase) for phase in PERIODIC if phase in phases]  # once: a look reads thousands of rows
    found = []
    for row in rows:
        core = row.w - row.lo if row.lo > 0 else row.w
        for column in columns:
            value = row.p[column] if column < len(row.p) else None
            if value is not None and value > 0:
                core -= value
        found.append(max(0, core))
    return found


def _own_ns(row: Step, phase: str, phases: list[str]) -> int | None:
    """The same without the start of an epoch, which counts as waiting for data."""
    value = phase_ns(row, phase, phases)
    return value if value is None or phase != "data_wait" else max(0, value - max(0, row.lo))


def phase_alone(rows: Iterable[Step], phase: str, phases: list[str]) -> list[Step]:
    """The rows that measured a phase, as if their steps had nothing else in them; epoch starts are taken out too."""
    own = [(row, _own_ns(row, phase, phases)) for row in rows]
    return [
        replace(row, w=value, lo=0, p=[value if name == phase else None for name in phases])
        for row, value in own
        if value is not None
    ]


def measured_steps(rows: Iterable[Step], phase: str, phases: list[str]) -> int:
    """Steps of the rows that measured a phase: of short steps, most are not watched that closely."""
    return sum(row.n for row in rows if phase_ns(row, phase, phases) is not None)


def mean_s(rows: Iterable[Step], phase: str, phases: list[str]) -> float | None:
    """Mean seconds per step of a phase over the rows that measured it; epoch starts are taken out of the data wait."""
    total = steps = 0
    for row in rows:
        value = _own_ns(row, phase, phases)
        if value is not None:
            total += value
            steps += row.n
    return total / steps / 1e9 if steps else None
