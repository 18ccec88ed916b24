"""Scores of trials and what they are worth. Trials pair by pair, or every image embedded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap_workloads.engine.loader import in_order
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.parts.verification import eer, tar_at_far
from hotlap_workloads.parts.verification_accuracy import best_accuracy, roc_auc
from hotlap_workloads.twin_verify.augment import normalised
from hotlap_workloads.twin_verify.objective import TwinObjective
from hotlap_workloads.twin_verify.pixels import Pixels
from hotlap_workloads.twin_verify.settings import TwinSettings
from hotlap_workloads.twin_verify.trials import Trials

__all__ = ["Scorer", "measured"]

Scores = NDArray[np.float64]
_HEAD_BATCH = 4096
"""Trials whose features are compared at once."""


def measured(scores: Scores, trials: Trials) -> dict[str, float]:
    """Shares, 0 to 1. ``twin_accuracy`` is the mean of two shares at the threshold that is best for all trials: of the
    pairs of twins told apart, and of the pairs of people with a twin recognised."""
    same, twin = np.array(trials.same, bool), np.array(trials.twin, bool)
    accuracy, threshold = best_accuracy(scores, same)
    out = {"accuracy": accuracy, "roc_auc": roc_auc(scores, same), "eer": eer(scores, same)}
    out |= {"tar_at_far_1e-2": tar_at_far(scores, same, 1e-2), "tar_at_far_1e-3": tar_at_far(scores, same, 1e-3)}
    if (twin & same).any() and (twin & ~same).any():
        accepted = scores >= threshold
        out["twin_accuracy"] = float((accepted[twin & same].mean() + (~accepted)[twin & ~same].mean()) / 2)
    return out


class _Images:
    """Images by number as bytes, or pairs of them as floats."""

    def __init__(self, pixels: Pixels, numbers: Sequence[Any], as_floats: bool) -> None:
        self.pixels, self.numbers, self.as_floats = pixels, numbers, as_floats

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: int) -> Tensor:
        images = self.pixels(self.numbers[place])
        return normalised(images) if self.as_floats else images


@dataclass(frozen=True)
class Scorer:
    """Each rank takes its share of the trials, or of the images."""

    objective: TwinObjective
    pixels: Pixels
    trials: Trials
    settings: TwinSettings
    device: torch.device
    ranks: Ranks

    def measure(self) -> dict[str, float]:
        """The metrics of the model now."""
        return measured(self.scores(), self.trials)

    def scores(self) -> Scores:
        """In the order of the trials."""
        return self._once() if self.settings.eval_embed == "once" else self._per_pair()

    def _loaded(self, numbers: list[list[int]], as_floats: bool) -> Iterator[Tensor]:
        """Batches (trials, images of each, 3, size, size) on the device."""
        s = self.settings
        images, pin = _Images(self.pixels, numbers, as_floats), s.pin_memory and self.device.type == "cuda"
        for batch in in_order(images, range(len(images)), s.eval_batch_size, s.eval_workers, pin):
            yield batch.to(self.device, non_blocking=s.non_blocking)

    def _per_pair(self) -> Scores:
        rows = [[a, b] for a, b in zip(self.trials.left, self.trials.right, strict=True)]
        found = []
        for pairs in self._loaded([rows[row] for row in self.ranks.own_rows(len(rows))], True):
            left, right = pairs.unbind(1)
            if self.settings.eval_pwca:
                self.objective.pwca_each(left, right)
            found.append(self.objective.scores(self.objective.embed(left), self.objective.embed(right)))
        return self.ranks.all_rows(found, len(rows)).double().numpy()

    def _once(self) -> Scores:
        numbers = sorted({*self.trials.left, *self.trials.right})
        mine = [[numbers[row]] for row in self.ranks.own_rows(len(numbers))]
        parts = [self.objective.embed(normalised(batch[:, 0])) for batch in self._loaded(mine, False)]
        features = self.ranks.all_rows(parts, len(numbers))
        place = {number: i for i, number in enumerate(numbers)}
        sides = torch.tensor([[place[n] for n in side] for side in (self.trials.left, self.trials.right)])
        sides, features = sides.to(self.device), features.to(self.device)
        scores = [
            self.objective.scores(*features[sides[:, start : start + _HEAD_BATCH]])
            for start in range(0, sides.shape[1], _HEAD_BATCH)
        ]
        return torch.cat(scores).double().cpu().numpy()
