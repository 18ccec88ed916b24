"""Two runs side by side."""

from __future__ import annotations

from hotlap.compare.amounts import cause_amounts, phase_amounts, step_amount
from hotlap.compare.caveats import run_caveats
from hotlap.compare.code import code_changes, code_notes, package_changes, variable_changes
from hotlap.compare.command_line import command_changes
from hotlap.compare.plans import move_changes
from hotlap.compare.settings import lever_changes, machine_changes, setting_changes
from hotlap.compare.side import Side
from hotlap.records.comparison import Change, Comparison

__all__ = ["compare_runs"]


def compare_runs(a: Side, b: Side) -> Comparison:
    """B against A: what takes longer or less, what was changed, and what speaks against comparing them."""
    return Comparison(
        of="runs",
        a=a.compared(),
        b=b.compared(),
        warnings=run_caveats(a, b),
        step=step_amount(a, b),
        phases=phase_amounts(a, b),
        causes=cause_amounts(a, b),
        changes=_changes(a, b),
        moves=move_changes(a.plan.moves if a.plan else [], b.plan.moves if b.plan else []),
        notes=code_notes(a.run.origin, b.run.origin),
    )


def _changes(a: Side, b: Side) -> list[Change]:
    old, new = a.run.origin, b.run.origin
    code = code_changes(old, new) if old is not None and new is not None else []
    packages = package_changes(old, new) if old is not None and new is not None else []
    variables = variable_changes(old, new) if old is not None and new is not None else []
    return [
        *code,
        *command_changes(a.run.command, b.run.command),
        *lever_changes(a, b),
        *setting_changes(a, b),
        *variables,
        *machine_changes(a, b),
        *packages,
    ]
