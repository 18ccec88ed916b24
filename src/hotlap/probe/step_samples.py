"""How many samples a step trains on: those of the batches fetched for it, else what its forwards are given.

A loop without a loader that adds gradients up is given another batch after each backward. Networks that take turns (a
GAN's) are given one and the same, and so is an optimizer's closure, or one that looks at a batch twice (sharpness-aware
minimisation).
"""

from __future__ import annotations

import weakref
from typing import Any

from hotlap.probe.recorder import Recorder

__all__ = ["StepSamples"]


class StepSamples:
    """The samples since the last backward, and who told them."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self.samples = 0
        """Since the last backward: they count once they are trained on."""
        self.root = 0
        """The module whose forward was asked for them; 0: none was."""
        self.last = 0
        """Samples of the last batch that a loader gave."""
        self.teller = 0
        """The module that told those of the step's backwards, and tells again after each; 0: they are whole."""
        self.split = False
        """Whether batches are split over several updates: the batch before this one was."""
        self._in_parts = False
        self._given: Any = None
        """A weak reference to what the forward was given that told them last."""

    def fetched(self, samples: int) -> None:
        """A batch was fetched for training."""
        self.samples += samples
        self.last = samples
        self.teller = 0
        self.split, self._in_parts = self._in_parts, False

    def trained(self) -> None:
        """A backward: what there is was trained on."""
        self.rec.samples += self.samples
        self.samples = self.root = 0

    def wanted(self, root: int) -> bool:
        """Whether the forward of this root is to tell how many samples it was given."""
        if self.root:
            return False
        if self.samples:
            return self.split
        if not self.rec.samples:
            return True
        if self.rec.cur is None:  # a forward inside a backward computes activations again
            self.takes_turn(root)
            return bool(self.teller)
        return False

    def takes_turn(self, root: int) -> None:
        """A trained network is called: where it is not the one that told the samples, they are of both."""
        if root != self.teller:
            self.teller = 0

    def tell(self, root: int, samples: int, given: Any) -> None:
        """The forward of this root was given so many: a part of a batch that was fetched, or a whole one."""
        self.root = root
        if self.rec.samples and self._given is not None and self._given() is given:
            return  # the same batch once more
        try:
            self._given = weakref.ref(given)
        except TypeError:  # a list, or a mapping: nobody can tell
            self._given = None
        whole = self.samples or self.last
        if 0 < samples < whole:
            self._in_parts = self._in_parts or not self.samples
        elif whole:
            self.samples = whole
            return
        self.samples = samples
        self.teller = root
