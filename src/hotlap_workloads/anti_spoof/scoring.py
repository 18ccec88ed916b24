"""Scores of recordings: the log-odds of bona fide over spoof. Higher is more bona fide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hotlap_workloads.anti_spoof.clips import BONA_FIDE, SPOOF, Clips
from hotlap_workloads.anti_spoof.data import BankClips, FileClips
from hotlap_workloads.anti_spoof.tandem import AsvErrors, min_tdcf
from hotlap_workloads.engine.loader import in_order
from hotlap_workloads.engine.order import Draw
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.parts.verification import eer

__all__ = ["Feed", "Scorer"]

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Feed:
    """How recordings reach the device in evaluation."""

    device: torch.device
    batch_size: int
    workers: int
    collate: Callable[[list[Any]], Any] | None

    def batches(self, clips: FileClips | BankClips, rows: Sequence[int]) -> Iterator[Tensor]:
        """Waves or features of those rows, in their order."""
        draws, on_gpu = [Draw(row, row) for row in rows], self.device.type == "cuda"
        for x, _ in in_order(clips, draws, self.batch_size, self.workers, on_gpu, self.collate):
            yield x.to(self.device, non_blocking=True)


@dataclass(frozen=True)
class Scorer:
    """Scores a part of the data, each rank its share, and measures it. ``asv``: None without ASV scores."""

    net: nn.Module
    clips: Clips
    data: FileClips | BankClips
    feed: Feed
    ranks: Ranks
    asv: AsvErrors | None = None

    def scores(self) -> Scores:
        """In the order of the clips."""
        logits = map(self.net, self.feed.batches(self.data, self.ranks.own_rows(len(self.data))))
        parts = [both[:, BONA_FIDE] - both[:, SPOOF] for both in logits]
        return self.ranks.all_rows(parts, len(self.data)).double().numpy()

    def measure(self) -> dict[str, float]:
        """Shares, 0 to 1; min t-DCF where there are ASV scores."""
        return self.measured(self.scores())

    def measured(self, scores: Scores) -> dict[str, float]:
        keys = np.array(self.clips.keys)
        said = {"eer": eer(scores, keys)}
        if self.asv is not None:
            said["min_tdcf"] = min_tdcf(scores, keys, self.asv)
        return {**said, "accuracy": float(np.mean((scores > 0) == keys))}
