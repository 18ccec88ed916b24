"""Recordings decoded once into one flat file, then read through a memory map: no decoding in later epochs.

The file holds int16 samples back to back. It is made anew when the list of files, or any of them, has changed. Data
beyond memory are no problem: the page cache keeps what it can.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotlap_workloads.parts.audio_file import Wave, read_wave

__all__ = ["ClipBank", "build_bank"]


class ClipBank:
    """Recording number i is ``bank[i]``, without a copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ends: NDArray[np.int64] = np.load(folder / "ends.npy")
        self._samples: Wave = np.memmap(folder / "samples.i16", np.int16, "r")

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> Wave:
        begin = self._ends[number - 1] if number else 0
        return self._samples[begin : self._ends[number]]

    def __reduce__(self) -> tuple[type[ClipBank], tuple[Path]]:
        """A loading process opens the file; the samples are not sent to it."""
        return ClipBank, (self._folder,)


def build_bank(paths: Sequence[Path], folder: Path, threads: int = 4) -> None:
    """Decode ``paths`` into ``folder``, unless that has been done."""
    wanted = json.dumps([[str(path), (status := path.stat()).st_size, status.st_mtime_ns] for path in paths])
    manifest = folder / "files.json"
    if manifest.exists() and manifest.read_text(encoding="utf-8") == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    manifest.unlink(missing_ok=True)
    ends, end = np.empty(len(paths), np.int64), 0
    with open(folder / "samples.i16", "wb") as out, ThreadPoolExecutor(threads) as pool:
        for begin in range(0, len(paths), 256):  # so many at once in memory
            for number, wave in enumerate(pool.map(read_wave, paths[begin : begin + 256]), begin):
                end += len(wave)
                ends[number] = end
                wave.tofile(out)
    np.save(folder / "ends.npy", ends)
    new = folder / "files.json.new"
    new.write_text(wanted, encoding="utf-8")
    os.replace(new, manifest)  # last: an interrupted build is begun again
