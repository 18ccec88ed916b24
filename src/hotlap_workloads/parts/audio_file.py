"""Recordings from WAV, FLAC and Ogg files: whole, mono, at the rate wanted, or an error that names the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from hotlap_workloads.errors import DataError

__all__ = ["RATE_HZ", "FromFiles", "Wave", "read_wave"]

RATE_HZ = 16_000
Wave = NDArray[np.int16]


def read_wave(path: Path) -> Wave:
    """The recording as int16, (samples,); several channels are averaged."""
    try:
        whole = _is_whole(path)
        with soundfile.SoundFile(str(path)) as file:
            rate, frames = file.samplerate, file.frames
            floats = file.subtype in ("FLOAT", "DOUBLE")
            wave = file.read(dtype="float64" if floats else "int16", always_2d=True)
    except OSError as err:
        raise DataError(path, f"cannot be read: {err.strerror}.") from err
    except soundfile.LibsndfileError as err:
        raise DataError(path, f"is no readable recording: {err.error_string}") from err
    if rate != RATE_HZ:
        raise DataError(path, f"has {rate} samples/s, {RATE_HZ} are needed.", f"sox IN -r {RATE_HZ} OUT")
    if not whole or len(wave) != frames:
        raise DataError(path, "is cut short.", "Copy it again.")
    if len(wave) == 0:
        raise DataError(path, "is empty.")
    if floats:  # libsndfile would cut -1 to 1 down to whole numbers: silence
        if not np.isfinite(wave).all():
            raise DataError(path, "holds samples that are no numbers.")
        wave = np.rint(wave.clip(-1, 1) * 32767).astype(np.int16)
    mono: Wave = wave[:, 0] if wave.shape[1] == 1 else wave.mean(axis=1).astype(np.int16)
    return mono


@dataclass(frozen=True)
class FromFiles:
    """Reads recording number i of a list. A class, so that loading processes can be started with it."""

    paths: Sequence[Path]

    def __call__(self, number: int) -> Wave:
        return read_wave(self.paths[number])


def _is_whole(path: Path) -> bool:
    """What decoders forgive: a WAV shorter than it declares, an Ogg stream without its last page."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(12)
        if head[:4] == b"RIFF" and head[8:] == b"WAVE":
            return int.from_bytes(head[4:8], "little") + 8 <= size
        if head[:4] == b"OggS":
            file.seek(max(0, size - 65_307))  # the longest page there is (RFC 3533)
            tail = file.read()
            page = tail.rfind(b"OggS")
            return page >= 0 and bool(tail[page + 5] & 4)
    return True
