"""Processes of a trial that Hotlap did not come into: named while the trial has no step yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from hotlap.inject.door import BOOTSTRAP
from hotlap.trial.arm import Arm
from hotlap.trial.progress import Progress
from hotlap.trial.shut_out import ShutOut

__all__ = ["NotWatched"]

LOOK_S = 2.0
"""Between two looks: each searches all processes."""


class NotWatched:
    """Looks while an arm starts, and ``say``s each reason once, whichever arm it was seen in."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.reasons: list[str] = []
        self._say = say
        self._looked = time.monotonic()
        self._by_arm: dict[Arm, ShutOut] = {}

    def look(self, arms: Iterable[Arm], progress: Progress) -> None:
        """Look at the arm that the progress is of, if it has no step and the last look is long enough ago."""
        now = time.monotonic()
        if progress.steps or now - self._looked < LOOK_S:
            return
        self._looked = now
        for arm in arms:
            if arm.spec.name == progress.arm and arm.alive:
                shut_out = self._by_arm.setdefault(arm, ShutOut(BOOTSTRAP, arm.spec.timeline_dir))
                for why in shut_out.look(arm.pid):
                    if why not in self.reasons:
                        self.reasons.append(why)
                        self._say(f"  not watched: {why}")
