"""What is looked at while whole runs go on: whether they are decided already, so that hours can be spared.

A plan that promises bits is decided by the first loss that differs, unless the script does not repeat itself: then the
unmodified script, run again with the same seed, differs from itself as well, and bits can be compared no further.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hotlap.lap.repeats import Repeats, single_losses
from hotlap.proof.curves import Curve, broken_at, differ_at
from hotlap.records.rows import Step

__all__ = ["InFlight"]


@dataclass(frozen=True)
class InFlight:
    """The look at one seed's runs. ``differs``: whether the unmodified script, run again, differs from its curve."""

    bits: bool
    repeats: Repeats
    differs: Callable[[Curve], bool]

    def decided(self, rows: Mapping[str, Sequence[Step]]) -> bool:
        """Whether the runs so far decide the matter."""
        curves = {label: single_losses(rows[label]) for label in rows}
        if not self.bits or not self.repeats.known:
            return broken_at(curves["baseline"], curves["candidate"]) is not None
        at = differ_at(curves["baseline"], curves["candidate"])
        return at is not None and not self.differs(curves["baseline"][: at + 1])
