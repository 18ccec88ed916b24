"""Whether a candidate leaves the card room: a plan that fills it runs out of memory on a longer sample, days later."""

from __future__ import annotations

from hotlap.lap.session import Session
from hotlap.records.machine import Accelerator
from hotlap.report import units
from hotlap.trial.arm import Arm

__all__ = ["MOST_FULL", "no_room_beside", "too_full"]

MOST_FULL = 0.95
"""Of the card's memory. What torch's allocator holds grows further as its blocks break into pieces that fit nothing."""


def too_full(session: Session, incumbent: Arm, arm: Arm) -> str | None:
    """In words, that ``arm`` holds more than :data:`MOST_FULL` of the card's memory, and the plan so far does not."""
    if not session.machine.accelerators:
        return None
    held, card = _held(session, arm)
    before, _ = _held(session, incumbent)
    limit = MOST_FULL * card.memory_bytes
    if held <= limit or before > limit:
        return None
    return (
        f"it holds {units.share(held / card.memory_bytes)} of the {card.name}'s memory, and above "
        f"{units.share(MOST_FULL)} a longer sample runs out of memory: put back"
    )


def no_room_beside(session: Session, first: Arm, second: Arm) -> bool:
    """Whether a third arm that needs what ``second`` needs would fill the card above :data:`MOST_FULL`."""
    if not session.machine.accelerators:
        return False
    (one, card), (other, _) = _held(session, first), _held(session, second)
    return one + 2 * other > MOST_FULL * card.memory_bytes


def _held(session: Session, arm: Arm) -> tuple[int, Accelerator]:
    """The most bytes that the arm's allocator held, and the card."""
    cards = session.machine.accelerators
    timeline = session.timeline(arm)
    if timeline is None:
        return 0, cards[0]
    number = (timeline.device_setting or {}).get("index") or 0
    card = cards[number] if number < len(cards) else cards[0]
    return max((tick.device_bytes or 0 for tick in timeline.tick), default=0), card
