"""Recordings of equal length for training and for evaluation, from files or from a bank of decoded ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from hotlap_workloads.anti_spoof.clips import Clips
from hotlap_workloads.engine.order import Draw
from hotlap_workloads.parts.audio_file import read_wave
from hotlap_workloads.parts.crop import crop_at
from hotlap_workloads.parts.flat_bank import FlatBank

__all__ = ["BankClips", "FileClips"]


class FileClips:
    """One recording: read and decode its file, cut, compute its features where told. Gives (waves or features, key).

    ``at_random``: cut anywhere, and else from the beginning.
    """

    def __init__(self, clips: Clips, samples: int, features: nn.Module | None, at_random: bool) -> None:
        self.clips, self.samples, self.features, self.at_random = clips, samples, features, at_random

    def __len__(self) -> int:
        return len(self.clips.paths)

    def __getitem__(self, draw: Draw) -> tuple[Tensor, int]:
        where = draw.uniform if self.at_random else 0.0
        wave = crop_at(read_wave(self.clips.paths[draw.row]), self.samples, where)
        x = torch.from_numpy(wave.astype(np.float32) / np.float32(32768))
        if self.features is not None:
            x = self.features(x[None])[0]
        return x, self.clips.keys[draw.row]


class BankClips:
    """A whole batch at once from decoded recordings, as int16: the device makes floats and features of them.

    ``bank``: recordings of at least ``samples`` samples.
    """

    def __init__(
        self, clips: Clips, samples: int, bank: FlatBank[np.int16], features: nn.Module | None, at_random: bool
    ) -> None:
        self.clips, self.samples, self.bank = clips, samples, bank
        self.features, self.at_random = features, at_random

    def __len__(self) -> int:
        return len(self.clips.paths)

    def __getitem__(self, draw: Draw) -> tuple[Tensor, Tensor]:
        x, keys = self.__getitems__([draw])
        return x[0], keys[0]

    def __getitems__(self, draws: Sequence[Draw]) -> tuple[Tensor, Tensor]:
        rows, where = [draw.row for draw in draws], [draw.uniform if self.at_random else 0.0 for draw in draws]
        keys = torch.tensor([self.clips.keys[row] for row in rows])
        x = torch.from_numpy(self.bank.stretches(rows, where, self.samples))
        if self.features is not None:
            x = self.features(x.float() / 32768)
        return x, keys
