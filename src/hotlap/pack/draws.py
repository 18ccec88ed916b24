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
_BITS = (1 << 64) - 1
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""SplitMix64's constants (Steele, Lea, Flood 2014)."""
_ROUNDS = (_U64(30), _U64(_FIRST)), (_U64(27), _U64(_SECOND))


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * _FIRST & _BITS
    x = (x ^ (x >> 27)) * _SECOND & _BITS
    return x ^ (x >> 31)


def _mix_all(x: np.ndarray[Any, Any]) -> None:
    """The same for each number, in its place."""
    scratch = np.empty_like(x)
    for shift, factor in _ROUNDS:
        np.right_shift(x, shift, out=scratch)
        np.bitwise_xor(x, scratch, out=x)
        np.multiply(x, factor, out=x)
    np.right_shift(x, _U64(31), out=scratch)
    np.bitwise_xor(x, scratch, out=x)


class Draws:
    """Uniform numbers for the samples at ``places`` of one epoch's order."""

    def __init__(self, seed: int, epoch: int, places: np.ndarray[Any, Any]) -> None:
        first, second = _mix((seed & _BITS) + _GOLDEN & _BITS), _mix(epoch + _GOLDEN & _BITS)
        self._base = _mix(first ^ _mix(second + 1 & _BITS))
        self._places = places.astype(np.uint64) * _U64(_GOLDEN)

    def take(self, chosen: np.ndarray[Any, Any]) -> Draws:
        """The same samples in another order."""
        new = object.__new__(Draws)
        new._base, new._places = self._base, self._places[chosen]
        return new

    def uniform(self, purpose: str) -> np.ndarray[Any, Any]:
        """One number in [0, 1) per sample; the same for the same purpose."""
        stream = _mix(self._base ^ (zlib.crc32(purpose.encode()) * _GOLDEN & _BITS))
        bits = self._places + _U64(stream)
        _mix_all(bits)
        numbers: np.ndarray[Any, Any] = (bits >> _U64(11)).astype(np.float64)
        numbers *= 2.0**-53
        return numbers

    def below(self, purpose: str, limits: np.ndarray[Any, Any] | int) -> np.ndarray[Any, Any]:
        """One whole number in [0, limit) per sample."""
        numbers: np.ndarray[Any, Any] = np.floor(self.uniform(purpose) * limits).astype(np.int64)
        return numbers
