"""Where two copies of the script do not fit into memory: trials end the arm whose turn it is not, and launch it again.

The usual trial freezes it, and a frozen process keeps all of its memory, on the device too. A training that fills more
than half of a card could not be tried at all.
"""

from __future__ import annotations

from hotlap.lap.session import MOST_GROWN_S, Session
from hotlap.records.trials import OUT_OF_MEMORY, Trial
from hotlap.trial.arm import Arm

__all__ = ["RANKS", "lacked_memory", "launches_per_trial", "leave", "several_devices", "switch_to", "tell"]

RANKS = "Ranks on several devices cannot be frozen within what they do together"
LAUNCHES = 3
"""Of either arm in a trial, for the fewest windows that count: each two windows in a row take a launch of their own."""


def lacked_memory(trial: Trial) -> bool:
    """Whether an arm of the trial found no memory, be it the kernel or the device that refused."""
    return trial.status == "failed" and OUT_OF_MEMORY in trial.reason


def launches_per_trial(session: Session) -> int:
    """Launches of either arm that a trial takes at least."""
    return LAUNCHES if session.one_at_a_time else 1


def switch_to(session: Session) -> None:
    """From here on one arm is there at a time."""
    session.one_at_a_time = True
    session.stop_all_but()


def leave(session: Session) -> None:
    """It was of no use: an arm does not fit even by itself."""
    session.one_at_a_time = False


def several_devices(arm: Arm) -> bool:
    """Whether an arm that has trained is ranks on devices of their own. Frozen, one may have begun a collective that
    another has not: its kernel would spin through the whole turn of the other arm, and age towards its time limit."""
    trainer = arm.poll()
    if trainer is None or trainer.header is None or trainer.header.world <= 1:
        return False
    return trainer.header.device != "cpu" or any(row.name == "device" for row in trainer.settings)


def tell(session: Session, why: str = "Two copies of the script do not fit into memory side by side") -> None:
    """Say that trials take longer, and give them the time, if the budget is ours."""
    grown = session.grow(MOST_GROWN_S)
    then = f"up to {MOST_GROWN_S / 60:.0f} minutes." if grown else "and a larger --budget tries more levers."
    session.listener.line(f"  {why}: they are launched in turn, which takes longer, {then}")
