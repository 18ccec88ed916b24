"""The training set: random crops of utterances, from files or from a bank of decoded ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap_workloads.engine.order import Draw
from hotlap_workloads.parts.audio_file import read_wave
from hotlap_workloads.parts.crop import crop_at
from hotlap_workloads.parts.flat_bank import FlatBank
from hotlap_workloads.speaker_verify.lists import TrainList

__all__ = ["BankCrops", "FileCrops"]

Augment = Callable[[NDArray[np.float32], int], NDArray[np.float32]]


class FileCrops:
    """One utterance: read and decode its file, crop, augment. Gives (wave, label)."""

    def __init__(self, utterances: TrainList, samples: int, augment: Augment | None) -> None:
        self.utterances, self.samples, self.augment = utterances, samples, augment

    def __len__(self) -> int:
        return len(self.utterances.paths)

    def __getitem__(self, draw: Draw) -> tuple[Tensor, int]:
        wave = read_wave(self.utterances.paths[draw.row])
        sound = crop_at(wave, self.samples, draw.uniform).astype(np.float32) / np.float32(32768)
        if self.augment is not None:
            sound = self.augment(sound, draw.seed)
        return torch.from_numpy(sound), self.utterances.labels[draw.row]


class BankCrops:
    """A whole batch at once from decoded utterances, as int16: the device makes floats of them.

    ``bank``: utterances of at least ``samples`` samples.
    """

    def __init__(self, utterances: TrainList, bank: FlatBank[np.int16], samples: int, augment: Augment | None) -> None:
        self.utterances, self.bank, self.samples, self.augment = utterances, bank, samples, augment

    def __len__(self) -> int:
        return len(self.utterances.paths)

    def __getitem__(self, draw: Draw) -> tuple[Tensor, Tensor]:
        waves, labels = self.__getitems__([draw])
        return waves[0], labels[0]

    def __getitems__(self, draws: Sequence[Draw]) -> tuple[Tensor, Tensor]:
        rows = [draw.row for draw in draws]
        crops = self.bank.stretches(rows, [draw.uniform for draw in draws], self.samples)
        waves = torch.from_numpy(crops)
        if self.augment is not None:
            sounds = zip(crops.astype(np.float32) / np.float32(32768), draws, strict=True)
            waves = torch.from_numpy(np.stack([self.augment(sound, draw.seed) for sound, draw in sounds]))
        return waves, torch.tensor([self.utterances.labels[row] for row in rows])
