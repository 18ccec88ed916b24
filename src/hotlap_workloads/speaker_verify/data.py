"""The training set: random crops of utterances, from files or from a bank of decoded ones."""

from __future__ import annotations

import random
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
        sound = crop_at(wave, self.samples, random.Random(draw.seed).random()).astype(np.float32) / np.float32(32768)
        if self.augment is not None:
            sound = self.augment(sound, draw.seed)
        return torch.from_numpy(sound), self.utterances.labels[draw.row]


class BankCrops:
    """A whole batch at once from decoded utterances, as int16: the device makes floats of them."""

    def __init__(self, utterances: TrainList, bank: FlatBank[np.int16], samples: int, augment: Augment | None) -> None:
        self.utterances, self.bank, self.samples, self.augment = utterances, bank, samples, augment

    def __len__(self) -> int:
        return len(self.utterances.paths)

    def __getitem__(self, draw: Draw) -> tuple[Tensor, Tensor]:
        waves, labels = self.__getitems__([draw])
        return waves[0], labels[0]

    def __getitems__(self, draws: Sequence[Draw]) -> tuple[Tensor, Tensor]:
        waves = np.empty((len(draws), self.samples), np.int16 if self.augment is None else np.float32)
        for out, draw in zip(waves, draws, strict=True):
            crop = crop_at(self.bank(draw.row), self.samples, random.Random(draw.seed).random())
            out[:] = (
                crop if self.augment is None else self.augment(crop.astype(np.float32) / np.float32(32768), draw.seed)
            )
        labels = [self.utterances.labels[draw.row] for draw in draws]
        return torch.from_numpy(waves), torch.tensor(labels)
