"""``pack.json``: what a pack is made of. Written last, so a folder without it is no pack yet.

Holds the schema, and for each part (an Arrow IPC file) its size, its chunks (record batches: byte range, rows, CRC-32)
and where each column's data starts in each chunk. So a reader needs no Arrow library: an address is a sum.
The document carries a CRC-32 of itself.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.pack.schema import Column, schema_from_json
from hotlap.records.errors import HotlapError

__all__ = [
    "FORMAT",
    "LEFT_OUT",
    "MANIFEST",
    "VERSION",
    "WORK",
    "Chunk",
    "Damaged",
    "Manifest",
    "Part",
    "part_file",
    "part_number",
    "read_json",
    "read_manifest",
    "write_json",
    "write_whole",
]

MANIFEST = "pack.json"
LEFT_OUT = "left_out.jsonl"
"""The rows of the source that could not be packed, beside the manifest."""
WORK = ".packing"
"""The folder in which a packing keeps its notes until it is done."""
FORMAT = "hotlap.pack"
VERSION = 1
_LARGEST = 1 << 48
"""Bytes or rows; what a processor can address."""


class Damaged(HotlapError):
    """What lies there is not what was written: something else than a pack that is missing, unfinished or newer."""


@dataclass(frozen=True)
class Chunk:
    """One record batch of a part: bytes ``start`` to ``end`` of the file, and each column's data buffer in it."""

    start: int
    end: int
    rows: int
    crc: int
    data: dict[str, int]
    """Column -> offset in the file of its first row's bytes."""

    def to_json(self) -> list[Any]:
        return [self.start, self.end, self.rows, self.crc, self.data]


def part_file(number: int) -> str:
    """The name of a part's Arrow file."""
    return f"part-{number:05d}.arrow"


def part_number(file: str) -> int:
    """Of a part's Arrow file or its lengths; -1: of another file."""
    found = re.fullmatch(r"part-(\d{5,})\.(arrow|lengths)", file)
    return int(found[1]) if found else -1


@dataclass(frozen=True)
class Part:
    """One Arrow file and, where columns vary in length, the file of their lengths."""

    file: str
    size_bytes: int
    rows: int
    frame_crc: int
    """Of what lies outside the chunks: Arrow's header and footer."""
    lengths_crc: int
    chunks: list[Chunk]

    @property
    def lengths_file(self) -> str:
        """Little-endian int64, one run of ``rows`` per column of varying length, in the schema's order."""
        return self.file.removesuffix(".arrow") + ".lengths"

    def to_json(self) -> dict[str, Any]:
        chunks = [c.to_json() for c in self.chunks]
        plain = {k: getattr(self, k) for k in ("file", "size_bytes", "rows", "frame_crc", "lengths_crc")}
        return {**plain, "chunks": chunks}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Part:
        """Refuses a file name that leads out of the folder, and chunks outside the file."""
        name = str(found["file"])
        if name != os.path.basename(name) or name in ("", ".", "..") or not name.endswith(".arrow"):
            raise Damaged(f"The pack names a part {name!r}, which is not a plain file name in its folder.")
        chunks = [Chunk(int(s), int(e), int(r), int(c), {k: int(v) for k, v in d.items()})
                  for s, e, r, c, d in found["chunks"]]  # fmt: skip
        size, rows = int(found["size_bytes"]), int(found["rows"])
        inside = size < _LARGEST and all(c.rows < _LARGEST for c in chunks)
        inside = inside and all(0 <= c.start < c.end <= size and c.rows > 0 for c in chunks)
        inside = inside and all(c.start <= at <= c.end for c in chunks for at in c.data.values())
        if not inside or sum(c.rows for c in chunks) != rows:
            raise Damaged(f"The pack's table of {name} is inconsistent.", "`hotlap pack verify` tells more.")
        return cls(name, size, rows, int(found["frame_crc"]), int(found["lengths_crc"]), chunks)


@dataclass(frozen=True)
class Manifest:
    """The whole document."""

    columns: tuple[Column, ...]
    parts: list[Part]
    metadata: dict[str, Any] = field(default_factory=dict)
    """Anything the source knew: class names, the source's own description, settings of the packing."""
    left_out: int = 0
    """Rows of the source that could not be packed (listed in ``left_out.jsonl``)."""

    @property
    def rows(self) -> int:
        return sum(p.rows for p in self.parts)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "columns": [c.to_json() for c in self.columns],
            "metadata": self.metadata,
            "left_out": self.left_out,
            "parts": [p.to_json() for p in self.parts],
        }


def _crc(document: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write with its own checksum."""
    write_whole(path, json.dumps({**document, "crc": _crc(document)}, separators=(",", ":")) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write to a temporary name, bring it to the disk, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: Path) -> dict[str, Any]:
    """A document that :func:`write_json` wrote, whole and unchanged."""
    try:
        document = json.loads(path.read_bytes())
        crc = document.pop("crc")
    except OSError as err:
        raise HotlapError(f"{path} cannot be read: {err.strerror}.", "May you read it?") from err
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as err:
        raise Damaged(f"{path} is damaged: it is not a whole document.", "Pack the data again.") from err
    if crc != _crc(document):
        raise Damaged(f"{path} is damaged: its checksum does not match.", "Pack the data again.")
    return dict(document)


def _check_addresses(path: Path, manifest: Manifest) -> None:
    """No row of a fixed column may lie outside its chunk, or where its numbers cannot be read from."""
    if len({c.name for c in manifest.columns}) != len(manifest.columns) or not manifest.columns:
        raise Damaged(f"{path} names a column twice, or none.")
    for part in manifest.parts:
        for chunk in part.chunks:
            for c in manifest.columns:
                at, width = chunk.data[c.name], np.dtype(c.dtype).itemsize
                size = chunk.rows * c.unit_bytes if c.kind == "tensor" else 0
                if at % width or at + size > chunk.end:
                    raise Damaged(f"{path} is inconsistent: column {c.name!r} does not lie where it says.")


def read_manifest(folder: Path) -> Manifest:
    """The pack in ``folder``; says what is wrong where there is none."""
    path = folder / MANIFEST
    if not path.is_file():
        if not folder.exists():
            raise HotlapError(f"{folder} does not exist.", "Is the path right? To make a pack: hotlap pack SRC DST")
        if any(folder.glob(f"{WORK}/*")):
            raise HotlapError(f"{folder} is not whole: packing was interrupted.", "Run the same `hotlap pack` again.")
        raise HotlapError(f"{folder} is no pack: there is no {MANIFEST}.", "Make one: hotlap pack SRC DST")
    document = read_json(path)
    if document.get("format") != FORMAT:
        raise HotlapError(f"{path} is not a pack's manifest: its format is {document.get('format')!r}.")
    if document.get("version") != VERSION:
        raise HotlapError(
            f"{path} has version {document.get('version')!r}; this Hotlap reads version {VERSION}.",
            "Update Hotlap, or pack again with this one.",
        )
    try:
        found = Manifest(
            schema_from_json(document["columns"]),
            [Part.from_json(p) for p in document["parts"]],
            dict(document["metadata"]),
            int(document["left_out"]),
        )
        _check_addresses(path, found)
        return found
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as err:
        raise Damaged(f"{path} is damaged: {err!r}.", "Pack the data again.") from err
