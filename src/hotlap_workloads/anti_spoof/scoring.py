"""Scores of recordings: the log-odds of bona fide over spoof. Higher is more bona fide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader

from hotlap_workloads.anti_spoof.clips import BONA_FIDE, SPOOF, Clips
from hotlap_workloads.anti_spoof.data import BankClips, FileClips
from hotlap_workloads.anti_spoof.tandem import AsvErrors, min_tdcf
from hotlap_workloads.engine.loader import outlive_sigterm
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

    def batches(self, clips: FileClips | BankClips, rows: list[int]) -> Iterator[Tensor]:
        """Waves or features of those rows, in their order."""
        draws = [Draw(row, row) for row in rows]
        loader: DataLoader[Any] = DataLoader(
            clips,  # type: ignore[arg-type]
            batch_sampler=[draws[i : i + self.batch_size] for i in range(0, len(draws), self.batch_size)],
            num_workers=self.workers,
            collate_fn=self.collate,
            pin_memory=self.device.type == "cuda",
            worker_init_fn=outlive_sigterm,
            generator=torch.Generator(),
        )
        for x, _ in loader:
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
        mine = list(range(self.ranks.rank, len(self.data), self.ranks.world))
        logits = map(self.net, self.feed.batches(self.data, mine))
        parts = [both[:, BONA_FIDE] - both[:, SPOOF] for both in logits]
        found = torch.cat(parts).double().cpu().numpy() if parts else np.empty(0)
        out = np.empty(len(self.data))
        for rows, values in self.ranks.gather((mine, found)):
            out[rows] = values
        return out

    def measure(self) -> dict[str, float]:
        """Shares, 0 to 1; min t-DCF where there are ASV scores."""
        return self.measured(self.scores())

    def measured(self, scores: Scores) -> dict[str, float]:
        keys = np.array(self.clips.keys)
        said = {"eer": eer(scores, keys)}
        if self.asv is not None:
            said["min_tdcf"] = min_tdcf(scores, keys, self.asv)
        return {**said, "accuracy": float(np.mean((scores > 0) == keys))}
