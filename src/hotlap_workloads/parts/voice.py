"""A made voice, for the small sets that trainings make themselves: its pitch, formants and tilt are a speaker."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.signal import lfilter

from hotlap_workloads.parts.audio_file import RATE_HZ

__all__ = ["Sound", "voice"]

Sound = NDArray[np.float64]
VOWELS_HZ = np.array([(730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410)])
"""First three formants of a, i, u, e, o: adult means of Peterson and Barney (1952)."""


def voice(random: Generator, seconds: float, pitch_hz: float, stretch: float, tilt: float) -> Sound:
    """Pulses of the glottis, breath, and a filter of three formants that changes with each vowel."""
    parts: list[Sound] = []
    while sum(part.size for part in parts) < seconds * RATE_HZ:
        count = int(random.uniform(0.12, 0.35) * RATE_HZ)
        melody = pitch_hz * (1 + 0.08 * np.sin(np.linspace(0, random.uniform(1, 6), count) + random.uniform(0, 6)))
        phase = np.cumsum(melody / RATE_HZ)
        pulses = np.diff(np.floor(phase), prepend=0.0) + 0.02 * random.standard_normal(count)
        sound: Sound = lfilter([1.0], [1.0, -tilt], pulses)
        for formant_hz in random.choice(VOWELS_HZ) * stretch * random.uniform(0.96, 1.04):
            radius = np.exp(-np.pi * 90 / RATE_HZ)
            sound = lfilter([1 - radius], [1, -2 * radius * np.cos(2 * np.pi * formant_hz / RATE_HZ), radius**2], sound)
        parts.append(sound * np.hanning(count) ** 0.3 * random.uniform(0.6, 1.0))
    return np.concatenate(parts)[: int(seconds * RATE_HZ)]
