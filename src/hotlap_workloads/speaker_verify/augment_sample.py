"""Augmentation one sample at a time, in the loading process: read a noise file, mix it in."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray
from scipy.signal import convolve

from hotlap_workloads.parts.audio_file import read_wave
from hotlap_workloads.parts.crop import crop_at
from hotlap_workloads.speaker_verify.noises import KINDS, LAWS, NoiseFiles

__all__ = ["SampleAugment"]

Sound = NDArray[np.float32]


class SampleAugment:
    """Adds noise, music, voices or a room to one crop."""

    def __init__(self, files: NoiseFiles) -> None:
        self.files = files

    def __call__(self, sound: Sound, seed: int) -> Sound:
        dice = random.Random(seed)
        kind = dice.choice(KINDS)
        if kind == "clean":
            return sound
        if kind == "room":
            return self._reverberate(sound, dice)
        return self._add(sound, kind, dice)

    def _reverberate(self, sound: Sound, dice: random.Random) -> Sound:
        room = read_wave(dice.choice(self.files.rooms)).astype(np.float32)
        room /= np.sqrt(np.sum(room**2))
        return np.asarray(convolve(sound, room)[: len(sound)], np.float32)

    def _add(self, sound: Sound, kind: str, dice: random.Random) -> Sound:
        law, files = LAWS[kind], self.files.by_kind[kind]
        sound_db = 10 * np.log10(np.mean(sound**2) + 1e-4 / 32768**2)
        out = sound.copy()
        for file in dice.sample(files, min(len(files), dice.randint(law.fewest, law.most))):
            noise = crop_at(read_wave(file), len(sound), dice.random()).astype(np.float32) / 32768
            noise_db = 10 * np.log10(np.mean(noise**2) + 1e-4 / 32768**2)
            below_db = dice.uniform(law.low_db, law.high_db)
            out += np.float32(10 ** ((sound_db - noise_db - below_db) / 20)) * noise
        return out
