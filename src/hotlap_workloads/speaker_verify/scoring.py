"""Trials are scored by the mean cosine over all pairs of crops of the two utterances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotlap_workloads.engine.loader import in_order
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.parts.audio_file import Wave
from hotlap_workloads.parts.crop import even_crops
from hotlap_workloads.parts.trials import Trials
from hotlap_workloads.parts.verification import eer, min_dcf

__all__ = ["EvalCrops", "Scorer"]


class EvalCrops:
    """The crops of one file, (crops, samples) as int16. ``read`` takes the number of a file."""

    def __init__(self, count: int, read: Callable[[int], Wave], samples: int, crops: int) -> None:
        self.count, self.read, self.samples, self.crops = count, read, samples, crops

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Tensor:
        return torch.from_numpy(even_crops(self.read(number), self.samples, self.crops))


@dataclass(frozen=True)
class Scorer:
    """Embeds the files of the trials, each rank its share, and measures EER and minDCF."""

    net: nn.Module
    crops: EvalCrops
    trials: Trials
    device: torch.device
    ranks: Ranks
    files_at_once: int = 1
    workers: int = 0
    p_target: float = 0.05
    c_miss: float = 1.0
    c_fa: float = 1.0

    def embeddings(self) -> Tensor:
        """(files, crops, dim), unit length, on the CPU."""
        mine, on_gpu = self.ranks.own_rows(len(self.crops)), self.device.type == "cuda"
        parts = []
        for waves in in_order(self.crops, mine, self.files_at_once, self.workers, on_gpu):
            files, crops, samples = waves.shape
            x = self.net(waves.view(files * crops, samples).to(self.device, non_blocking=True).float() / 32768)
            parts.append(F.normalize(x.float(), dim=1).view(files, crops, -1).cpu())
        return self.ranks.all_rows(parts, len(self.crops))

    def scores(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The mean over all pairs of crops is the product of the means over the crops of each file."""
        means = self.embeddings().mean(dim=1).double().numpy()
        products: np.ndarray[tuple[int], np.dtype[np.float64]] = np.einsum(
            "td,td->t", means[self.trials.left], means[self.trials.right]
        )
        return products

    def measure(self) -> dict[str, float]:
        """Shares, 0 to 1."""
        scores = self.scores()
        same = self.trials.same
        return {"eer": eer(scores, same), "min_dcf": min_dcf(scores, same, self.p_target, self.c_miss, self.c_fa)}
