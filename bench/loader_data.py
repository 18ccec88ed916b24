"""Data sets for ``bench/loader.py``, made here and nowhere downloaded: photo-like JPEGs and recordings."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image as Picture

from hotlap.pack import PackSettings, SourceOptions, open_source, pack

__all__ = ["CLIP", "CROP", "make"]

CROP = (112, 112)
CLIP = 32_000
"""Two seconds at 16 kHz."""
_SIDE = 160
_RECORDING = 64_000


def _photo(rng: np.random.Generator) -> bytes:
    """Smooth areas, edges and grain, so that the JPEG is as large as a photograph's (about 6 KB)."""
    coarse = Picture.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((_SIDE, _SIDE), Picture.BICUBIC)
    pixels = np.asarray(coarse).astype(np.int16)
    y, x = rng.integers(0, _SIDE - 40, 2)
    pixels[y : y + 40, x : x + 40] = rng.integers(0, 256, 3)
    pixels += rng.normal(0, 6, pixels.shape).astype(np.int16)
    out = io.BytesIO()
    Picture.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=85)
    return out.getvalue()


def make(folder: Path, kind: str, count: int, processes: int) -> None:
    """Files below ``folder/files`` and packs of them, each only if it is not there yet."""
    files = folder / "files"
    if not (folder / "made").exists():
        files.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        for k in range(count):
            if kind == "images":
                path = files / f"{k % 100:03d}" / f"{k:06d}.jpg"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(_photo(rng))
            else:
                import soundfile

                path = files / f"{k % 100:03d}" / f"{k:06d}.wav"
                path.parent.mkdir(exist_ok=True)
                soundfile.write(path, rng.integers(-9000, 9000, _RECORDING).astype(np.int16), 16_000)
        (folder / "made").touch()
    variants = {"planar": SourceOptions(store="raw")}
    if kind == "images":
        variants["interleaved"] = SourceOptions(store="raw", interleaved=True)
        variants["encoded"] = SourceOptions(store="encoded")
    for name, options in variants.items():
        if not (folder / name / "pack.json").exists():
            pack(open_source(str(files), options), folder / name, PackSettings(processes=processes))
