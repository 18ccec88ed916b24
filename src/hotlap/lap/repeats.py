"""Does the unmodified script repeat itself? Where it does not, equal bits cannot be asked of any plan.

On a GPU many a training adds up in another order each time (atomics, cuDNN's choice of algorithm), and a script may
take its seed from the clock. A plan whose losses differ has then shown nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hotlap.lap.session import Session
from hotlap.proof.curves import Curve, differ_at
from hotlap.records.rows import Step
from hotlap.trial.arm import Arm
from hotlap.trial.arm_run import losses_of
from hotlap.trial.budget import Budget
from hotlap.trial.single import run_until

__all__ = ["Repeats", "single_losses"]


@dataclass
class Repeats:
    """What is known of it. The unmodified script is launched once more the first time that it matters."""

    known: bool = True
    """Nothing shows that it does not."""
    note: str = ""
    """What the user is told where it does not."""
    uncertain: str = ""
    """Why it could not be found out."""
    _asked: bool = False

    def differs(self, session: Session, seed: int, curve: Curve, make: Callable[[], Arm], budget: Budget) -> bool:
        """Whether the script's losses do not repeat ``curve``, which it had with ``seed``. ``make``: its arm, again."""
        if self._asked:
            return not self.known
        self._asked = True
        arm = make()
        try:
            outcome = run_until(arm, budget, steps=len(curve), on_progress=session.on_progress)
            trainer = arm.poll()
            again = single_losses([] if trainer is None else trainer.steps)
        finally:
            session.discard(arm)
        at = differ_at(curve, again)
        if at is not None:
            self.known = False
            self.note = (
                f"The unmodified script does not repeat itself: run twice with seed {seed}, its losses differ from "
                f"step {at} on. So bits cannot be compared, and quality is judged by non-inferiority."
            )
        elif len(again) < len(curve):
            how = outcome.reason or "told too few losses"
            self.uncertain = f"Whether the script repeats itself is not known: run again with seed {seed}, it {how}."
        return not self.known


def single_losses(rows: Sequence[Step]) -> list[float | None]:
    """The losses of the rows before those that hold several steps."""
    several = next((at for at, row in enumerate(rows) if row.n != 1), len(rows))
    return losses_of(rows[:several])
