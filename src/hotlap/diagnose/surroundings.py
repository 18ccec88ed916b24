"""What the machine did beside the training, as Hotlap's own process saw it, and which cause that speaks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotlap.diagnose.policy import Policy

__all__ = ["Around", "Change", "change_around"]


@dataclass(frozen=True)
class Around:
    """The machine from the look before until ``t`` (nanoseconds, the timeline's clock). None: not measured."""

    t: int
    others_cores: float | None = None
    """Cores that others took on average, stolen time included."""
    waited_frac: float | None = None
    """Part of the time for which the training thread was ready to go on and had no core."""
    swapped_bytes_per_s: float | None = None
    """To and from the swap, by everybody."""
    throttled_frac: float | None = None
    """Part of the time in which the control group was held back because its quota of CPU was used up."""
    thermal_events_per_s: float | None = None
    """Times the processor throttled itself, by its own count."""


@dataclass(frozen=True)
class Change:
    """Means before and after a change; None where one side was not measured."""

    others_cores: tuple[float, float] | None
    waited_frac: tuple[float, float] | None
    swapped_bytes_per_s: tuple[float, float] | None
    throttled_frac: tuple[float, float] | None
    thermal_events_per_s: tuple[float, float] | None

    def swapping(self, policy: Policy) -> bool:
        """Whether the machine began to swap."""
        pair = self.swapped_bytes_per_s
        return pair is not None and pair[1] >= policy.swap_bytes_per_s and pair[1] >= 4 * pair[0]

    def neighbours(self, cores: int, policy: Policy) -> bool:
        """Whether others took cores that they had not taken before."""
        pair = self.others_cores
        least = max(policy.neighbour_cores, policy.neighbour_frac * cores)
        return pair is not None and pair[1] - pair[0] >= least

    def crowded(self, policy: Policy) -> bool:
        """Whether the training thread began to wait for a core, whoever is on it: others, or the script's own."""
        pair = self.waited_frac
        return pair is not None and pair[1] - pair[0] >= policy.waited_frac

    def held_back(self, policy: Policy) -> bool:
        """Whether a quota of CPU began to hold the training back."""
        quota = self.throttled_frac
        return quota is not None and quota[1] - quota[0] >= policy.throttled_frac

    def hot(self, policy: Policy) -> bool:
        """Whether the processor began to throttle itself. It does so now and then: this alone explains no drift."""
        heat = self.thermal_events_per_s
        return heat is not None and heat[1] >= policy.thermal_events_per_s and heat[1] > 2 * heat[0]

    def numbers(self) -> dict[str, list[float]]:
        """What was measured, ``name: [before, after]``."""
        return {name: list(pair) for name, pair in vars(self).items() if pair is not None}


def _means(rows: Sequence[Around], name: str, start_ns: int, split_ns: int, end_ns: int) -> tuple[float, float] | None:
    before = [v for row in rows if start_ns < row.t <= split_ns and (v := getattr(row, name)) is not None]
    after = [v for row in rows if split_ns < row.t <= end_ns and (v := getattr(row, name)) is not None]
    return (sum(before) / len(before), sum(after) / len(after)) if before and after else None


def change_around(rows: Sequence[Around], start_ns: int, split_ns: int, end_ns: int) -> Change:
    """The looks of the span, before the split and after it. The look that reaches over the split counts as after."""
    return Change(
        others_cores=_means(rows, "others_cores", start_ns, split_ns, end_ns),
        waited_frac=_means(rows, "waited_frac", start_ns, split_ns, end_ns),
        swapped_bytes_per_s=_means(rows, "swapped_bytes_per_s", start_ns, split_ns, end_ns),
        throttled_frac=_means(rows, "throttled_frac", start_ns, split_ns, end_ns),
        thermal_events_per_s=_means(rows, "thermal_events_per_s", start_ns, split_ns, end_ns),
    )
