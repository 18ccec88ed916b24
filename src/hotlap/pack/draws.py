"""Random numbers that belong to a sample, not to a thread: hash of (seed, epoch, place in the epoch, purpose).

So a crop is the same whichever thread makes the batch, on whichever rank, after a resume; and nobody else's random
generator is touched. SplitMix64's finaliser, vectorised.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

__all__ = ["Draws"]

_U64 = np.uint64


def _mix(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x = (x ^ (x >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> _U64(27))) * _U64(0x94D049BB133111EB)
    mixed: np.ndarray[Any, Any] = x ^ (x >> _U64(31))
    return mixed


class Draws:
    """Uniform numbers for the samples at ``places`` of one epoch's order."""

    def __init__(self, seed: int, epoch: int, places: np.ndarray[Any, Any]) -> None:
        base = _mix(np.array([seed & (1 << 64) - 1, epoch], np.uint64) + _U64(0x9E3779B97F4A7C15))
        self._base = _mix(base[:1] ^ _mix(base[1:] + _U64(1)))
        self._places = places.astype(np.uint64)

    def take(self, chosen: np.ndarray[Any, Any]) -> Draws:
        """The same samples in another order."""
        new = object.__new__(Draws)
        new._base, new._places = self._base, self._places[chosen]
        return new

    def uniform(self, purpose: str) -> np.ndarray[Any, Any]:
        """One number in [0, 1) per sample; the same for the same purpose."""
        stream = _mix(self._base ^ _U64(zlib.crc32(purpose.encode()) * 0x9E3779B97F4A7C15 & (1 << 64) - 1))
        bits = _mix(stream + self._places * _U64(0x9E3779B97F4A7C15))
        numbers: np.ndarray[Any, Any] = (bits >> _U64(11)).astype(np.float64) * 2.0**-53
        return numbers

    def below(self, purpose: str, limits: np.ndarray[Any, Any] | int) -> np.ndarray[Any, Any]:
        """One whole number in [0, limit) per sample."""
        numbers: np.ndarray[Any, Any] = np.floor(self.uniform(purpose) * limits).astype(np.int64)
        return numbers
