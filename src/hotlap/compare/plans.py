"""Two plans side by side: which moves they have, with which settings."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.compare.caveats import plan_caveats
from hotlap.records.comparison import Compared, Comparison, MoveChange
from hotlap.records.plan import Move, Plan

__all__ = ["compare_plans", "move_changes"]


def compare_plans(a: tuple[str, Plan], b: tuple[str, Plan]) -> Comparison:
    """B against A, each a file and its plan."""
    (_, old), (_, new) = a, b
    return Comparison(
        of="plans",
        a=_compared(*a),
        b=_compared(*b),
        warnings=plan_caveats(old, new),
        moves=move_changes(old.moves, new.moves),
        notes=_order(old.moves, new.moves),
    )


def _compared(path: str, plan: Plan) -> Compared:
    return Compared(
        name=path.replace("\\", "/").rpartition("/")[2],
        path=path,
        kind="plan",
        script=plan.script,
        started=plan.created or None,
        machine=plan.machine or None,
        torch=plan.torch or None,
        speedup=plan.speedup,
        low=plan.low,
        high=plan.high,
    )


def move_changes(a: Sequence[Move], b: Sequence[Move]) -> list[MoveChange]:
    """Every lever of either plan, in A's order, then what B has more."""
    old, new = {move.lever: move for move in a}, {move.lever: move for move in b}
    return [_change(lever, old.get(lever), new.get(lever)) for lever in dict.fromkeys([*old, *new])]


def _change(lever: str, old: Move | None, new: Move | None) -> MoveChange:
    if old is None or new is None:
        return MoveChange(lever, "only b" if old is None else "only a", old, new)
    if old.setting != new.setting:
        return MoveChange(lever, "setting", old, new)
    return MoveChange(lever, "same" if old.preserves == new.preserves else "preserves", old, new)


def _order(a: Sequence[Move], b: Sequence[Move]) -> list[str]:
    old = [move.lever for move in a if move.lever in {m.lever for m in b}]
    new = [move.lever for move in b if move.lever in set(old)]
    return ["The moves that both have stand in another order."] if old != new else []
