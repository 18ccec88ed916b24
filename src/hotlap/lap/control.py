"""Does the unmodified script repeat itself? Where it does not, equal bits cannot be asked of any plan.

On a GPU many a training adds up in another order each time (atomics, cuDNN's choice of algorithm), and a script may
take its seed from the clock. A plan whose losses differ has then shown nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotlap.lap.session import Session
from hotlap.proof.same import first_difference
from hotlap.trial.budget import Budget
from hotlap.trial.marks import losses
from hotlap.trial.single import run_until

__all__ = ["Control"]


@dataclass
class Control:
    """Launches the unmodified script once more with a seed that it has had, and remembers what came of it."""

    session: Session
    replay_batches: int = 0
    """As the runs had it that are compared with."""
    note: str = ""
    """What the user is told where the script does not repeat itself."""
    _asked: bool = False

    def differs(self, seed: int, baseline: Sequence[float], candidate: Sequence[float]) -> bool:
        """Whether the script's own losses differ from ``baseline``, up to where ``candidate``'s do."""
        at = first_difference(baseline, candidate)
        if self._asked or at is None:
            return bool(self.note)
        self._asked = True
        session = self.session
        session.stage = "control: the unmodified script again"
        if session.one_at_a_time:
            session.stop_all_but()
        arm = session.arm("control", seed_offset=seed, replay_batches=self.replay_batches)
        try:
            run_until(arm, Budget(), steps=at + 1, on_progress=session.on_progress)
            again = losses(arm)
        finally:
            session.discard(arm)
        first = first_difference(baseline[: at + 1], again)
        if first is not None:
            self.note = (
                "The unmodified script does not repeat itself: launched twice with the same seeds, its losses differ "
                f"from step {first} on. So bits cannot be compared, and quality is judged by non-inferiority."
            )
        return first is not None
