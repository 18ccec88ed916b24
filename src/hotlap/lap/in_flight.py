"""What is looked at while whole runs go on: whether they are decided already, so that hours can be spared.

A plan that promises bits is decided by the first loss that differs, unless the script does not repeat itself: then the
unmodified script, run again with the same seed, differs from itself as well, and bits can be compared no further.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hotlap.proof.curves import broken_at, differ_at
from hotlap.records.rows import Step
from hotlap.trial.arm import Arm
from hotlap.trial.arm_run import losses_of
from hotlap.trial.budget import Budget
from hotlap.trial.progress import OnProgress
from hotlap.trial.single import run_until

__all__ = ["InFlight", "Repeats"]


@dataclass
class Repeats:
    """What is known of whether the script repeats itself; kept over the seeds of a proof."""

    known: bool = True
    note: str = ""
    uncertain: str = ""
    """Why it could not be found out."""


class InFlight:
    """The look at one seed's runs. ``control``: makes a further arm of the unmodified script with the same seed."""

    def __init__(
        self, seed: int, bits: bool, repeats: Repeats, control: Callable[[], Arm], budget: Budget,
        on_progress: OnProgress,
    ) -> None:  # fmt: skip
        self.seed = seed
        self.bits = bits
        self.repeats = repeats
        self.control = control
        self.budget = budget
        self.on_progress = on_progress

    def decided(self, rows: Mapping[str, Sequence[Step]]) -> bool:
        """Whether the runs so far decide the matter."""
        curves = {label: losses_of(_single(rows[label])) for label in rows}
        if not self.bits or not self.repeats.known:
            return broken_at(curves["baseline"], curves["candidate"]) is not None
        at = differ_at(curves["baseline"], curves["candidate"])
        return at is not None and not self._differs_from_itself(curves["baseline"][: at + 1])

    def _differs_from_itself(self, curve: list[float | None]) -> bool:
        """Run the unmodified script again as far as ``curve`` goes. True: it is another one, so bits say nothing."""
        if self.repeats.uncertain:
            return False
        arm = self.control()
        try:
            outcome = run_until(arm, self.budget, steps=len(curve), on_progress=self.on_progress)
            trainer = arm.poll()
            again = losses_of(_single([] if trainer is None else trainer.steps))
        finally:
            arm.stop()
        if len(again) < len(curve):
            self.repeats.uncertain = (
                f"Whether the script repeats itself is not known: run again with seed {self.seed}, it {outcome.reason}."
            )
            return False
        at = differ_at(curve, again)
        if at is None:
            return False
        self.repeats.known = False
        self.repeats.note = (
            f"The unmodified script does not repeat itself: run twice with seed {self.seed}, its losses differ from "
            f"step {at} on. So bits cannot be compared, and quality is judged by non-inferiority."
        )
        return True


def _single(rows: Sequence[Step]) -> list[Step]:
    """The rows before those that hold several steps."""
    found = []
    for row in rows:
        if row.n != 1:
            break
        found.append(row)
    return found
