"""What an arm's rows say besides its steps: what the levers did, how the loader is set up, the losses."""

from __future__ import annotations

from typing import Any, Literal

from hotlap.records.rows import Mark
from hotlap.trial.arm import Arm

__all__ = ["changes", "loader", "losses", "verdict"]

Verdict = Literal["failed", "no-effect", "refused"]


def latest(arm: Arm, lever: str) -> list[Mark]:
    """The last word of each process on a lever."""
    found = []
    for tail in arm.tails():
        marks = [m for m in tail.marks if m.kind == "lever" and m.id == lever]
        if marks:
            found.append(marks[-1])
    return found


def verdict(arm: Arm) -> tuple[Verdict, str] | None:
    """Why the move on trial cannot be measured, or None. One process where it was applied is enough."""
    if arm.spec.lever is None:
        return None
    last = latest(arm, arm.spec.lever)
    for state in ("failed", "refused"):
        for mark in last:
            if mark.state == state:
                return state, mark.why or f"the lever was {state}"
    if last and all(mark.state == "no-effect" and mark.count == 0 for mark in last):
        return "no-effect", next((mark.why for mark in last if mark.why), "found nothing to change")
    return None


def changes(arm: Arm) -> int:
    """How many things the move on trial changed; all levers' changes where no single one is on trial."""
    ids = {m.id for tail in arm.tails() for m in tail.marks if m.kind == "lever"}
    wanted = ids if arm.spec.lever is None else {arm.spec.lever}
    return sum(mark.count for lever in wanted for mark in latest(arm, lever))


def loader(arm: Arm) -> dict[str, Any] | None:
    """How the training loader was set up, as last seen."""
    trainer = arm.poll()
    if trainer is None:
        return None
    found = [s.value for s in trainer.settings if s.name == "loader" and not s.value.get("validation")]
    return found[-1] if found else None


def losses(arm: Arm) -> list[float]:
    """Loss of each step of the first start, from step 0 on, up to the first one that is not known."""
    trainers = arm.trainers()
    values: list[float] = []
    for row in trainers[0].steps if trainers else []:
        if row.n != 1 or row.i != len(values) or not row.l or row.l[-1] is None:
            break
        values.append(row.l[-1])
    return values
