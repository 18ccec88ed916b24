"""Adding to a pack: what is added is read as the pack's rows were, unless that is said otherwise, which is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from hotlap.pack.job import PLAN
from hotlap.pack.manifest import MANIFEST, Manifest, read_manifest
from hotlap.pack.schema import Column
from hotlap.pack.sources.options import SourceOptions
from hotlap.records.errors import EXIT_USAGE, HotlapError

__all__ = ["RESIZED", "appended_pack", "options_as_packed"]

RESIZED = "resized_to"
"""Key of a pack's metadata: ``HEIGHTxWIDTH`` that its images were resized to while packing."""


def appended_pack(folder: Path) -> Manifest:
    """The pack in ``folder``, or an error that says that there is none to append to."""
    if not (folder / MANIFEST).exists() and not (folder / PLAN).exists():
        raise HotlapError(f"{folder} is no pack: there is nothing to append to.", "Leave --append out to make one.")
    return read_manifest(folder)


def options_as_packed(folder: Path, asked: SourceOptions, rows: str | None) -> SourceOptions:
    """``asked`` with what it leaves open (store, size, and ``rows``: planar or interleaved) as the pack has it."""
    manifest = appended_pack(folder)
    pixels = next((c for c in manifest.columns if _is_pixels(c)), None)
    if pixels is not None:
        _refuse(folder, "decoded images", "--store encoded", asked.store == "encoded")
        return _as_pixels(folder, pixels, asked, rows, manifest.metadata.get(RESIZED))
    if any(c.kind == "ragged" and c.name == "audio" for c in manifest.columns):
        _refuse(folder, "decoded recordings", "--store encoded", asked.store == "encoded")
        return replace(asked, store="raw")
    if any(c.kind == "bytes" for c in manifest.columns):
        _refuse(folder, "encoded files", "--store raw", asked.store == "raw")
        _refuse(folder, "encoded files", f"--size {_text(asked.size)}", asked.size is not None)
        return replace(asked, store="encoded")
    return asked


def _as_pixels(folder: Path, column: Column, asked: SourceOptions, rows: str | None, resized: object) -> SourceOptions:
    is_planar = column.shape[0] == 3
    size = (column.shape[1], column.shape[2]) if is_planar else (column.shape[0], column.shape[1])
    _refuse(folder, f"images of {_text(size)}", f"--size {_text(asked.size)}", asked.size not in (None, size))
    held = "planar" if is_planar else "interleaved"
    _refuse(folder, f"{held} images", f"--rows {rows}", rows not in (None, held))
    # images of another size are refused where the pack's own were of one size: to stretch them was never asked for
    was_resized = re.fullmatch(r"\d+x\d+", str(resized)) is not None
    return replace(asked, store="raw", size=size if was_resized else asked.size, interleaved=not is_planar)


def _is_pixels(column: Column) -> bool:
    is_image = column.kind == "tensor" and column.dtype == "uint8" and len(column.shape) == 3
    return is_image and 3 in (column.shape[0], column.shape[2])


def _text(size: tuple[int, int] | None) -> str:
    return f"{size[0]}x{size[1]}" if size else ""


def _refuse(folder: Path, held: str, option: str, is_other: bool) -> None:
    if is_other:
        name = option.partition(" ")[0]
        hint = f"Leave {name} out: what is appended is read as the pack was."
        raise HotlapError(f"{folder} holds {held}: {option} does not go with that.", hint, EXIT_USAGE)
