"""Adding to a pack: what is added is read as the pack's rows were, unless that is said otherwise, which is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hotlap.pack.job import PLAN
from hotlap.pack.manifest import MANIFEST, read_manifest
from hotlap.pack.sources.options import LAYOUT, RESIZED, STORE, SourceOptions
from hotlap.records.errors import EXIT_USAGE, HotlapError

__all__ = ["check_pack", "options_as_packed"]


def check_pack(folder: Path) -> None:
    """HotlapError where ``folder`` holds no pack to append to, whole or under way."""
    if not (folder / MANIFEST).exists() and not (folder / PLAN).exists():
        raise HotlapError(f"{folder} is no pack: there is nothing to append to.", "Leave --append out to make one.")


def options_as_packed(folder: Path, asked: SourceOptions, rows: str | None) -> SourceOptions:
    """``asked`` with what it leaves open (store, size, and ``rows``: planar or interleaved) as the pack has it."""
    check_pack(folder)
    held = read_manifest(folder).metadata
    store, layout, resized = held.get(STORE), held.get(LAYOUT), held.get(RESIZED)
    files = "encoded files" if store == "encoded" else f"decoded {'images' if layout else 'recordings'}"
    if store and asked.store not in ("auto", store):
        raise _other(folder, files, f"--store {asked.store}")
    size = asked.size and f"{asked.size[0]}x{asked.size[1]}"
    if size and (store == "encoded" or resized not in (None, size)):
        raise _other(folder, f"images of {resized}" if resized else files, f"--size {size}")
    if layout and rows not in (None, layout):
        raise _other(folder, f"{layout} images", f"--rows {rows}")
    if resized:  # others are not resized: to stretch images was never asked for
        height, width = map(int, resized.split("x"))
        asked = replace(asked, size=(height, width))
    return replace(asked, store=store or asked.store, interleaved=(layout or rows) == "interleaved")


def _other(folder: Path, held: str, option: str) -> HotlapError:
    hint = f"Leave {option.split()[0]} out: what is appended is read as the pack was."
    return HotlapError(f"{folder} holds {held}: {option} does not go with that.", hint, EXIT_USAGE)
