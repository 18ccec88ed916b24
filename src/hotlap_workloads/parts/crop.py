"""Stretches of a recording: at random for training, evenly spread for evaluation. Short recordings are repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hotlap_workloads.parts.audio_file import Wave

__all__ = ["LongEnough", "crop_at", "even_crops"]


@dataclass(frozen=True)
class LongEnough:
    """Recordings as ``read`` gives them, by number; short ones repeated to ``length`` samples."""

    read: Callable[[int], Wave]
    length: int

    def __call__(self, number: int) -> Wave:
        return _long_enough(self.read(number), self.length)


def crop_at(wave: Wave, length: int, where: float) -> Wave:
    """``length`` samples; ``where`` in [0, 1) goes from the first possible beginning to the last."""
    wave = _long_enough(wave, length)
    begin = int(where * (len(wave) - length + 1))
    return wave[begin : begin + length]


def even_crops(wave: Wave, length: int, count: int) -> Wave:
    """(count, length), from the beginning to the end of the recording. One crop is its middle."""
    wave = _long_enough(wave, length)
    begins = np.linspace(0, len(wave) - length, count) if count > 1 else np.array([(len(wave) - length) / 2])
    return np.stack([wave[begin : begin + length] for begin in begins.astype(np.int64)])


def _long_enough(wave: Wave, length: int) -> Wave:
    return wave if len(wave) >= length else np.resize(wave, length)
