"""``hotlap pack verify``: every byte of a pack against its checksums, damage named by file and rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hotlap.pack.checksum import crc32
from hotlap.pack.manifest import Damaged, Part, read_manifest
from hotlap.records.errors import HotlapError

__all__ = ["verify"]


def verify(folder: str | Path, progress: Callable[[int, int], None] | None = None) -> list[str]:
    """What is damaged, one sentence each; empty when all is as it was written.

    Raises HotlapError where nothing can be said: no pack, an unfinished one, one of a newer version, files that may not
    be read.
    """
    folder = Path(folder)
    try:
        manifest = read_manifest(folder)
    except Damaged as err:
        return [str(err)]
    problems = []
    total, done, first = sum(p.size_bytes for p in manifest.parts), 0, 0
    for part in manifest.parts:
        try:
            problems += _part_problems(folder, part, first)
            if any(c.kind != "tensor" for c in manifest.columns):
                lengths = (folder / part.lengths_file).read_bytes()
                if crc32(lengths) != part.lengths_crc:
                    problems.append(f"{part.lengths_file}: the lengths of rows are damaged.")
        except PermissionError as err:
            raise HotlapError(f"{err.filename} cannot be read: {err.strerror}.", "May you read it?") from err
        except OSError as err:
            problems.append(f"{err.filename}: cannot be read: {err.strerror}.")
        first += part.rows
        done += part.size_bytes
        if progress is not None:
            progress(done, total)
    return problems


def _part_problems(folder: Path, part: Part, first: int) -> list[str]:
    path = folder / part.file
    size = path.stat().st_size
    if size != part.size_bytes:
        return [f"{part.file}: has {size} bytes, should have {part.size_bytes}."]
    problems, frame = [], 0
    with open(path, "rb") as file:
        for chunk in part.chunks:
            frame = crc32(file.read(chunk.start - file.tell()), frame)
            if crc32(file.read(chunk.end - chunk.start)) != chunk.crc:
                rows = f"rows {first} to {first + chunk.rows - 1}"
                problems.append(f"{part.file}: bytes {chunk.start} to {chunk.end} are damaged ({rows}).")
            first += chunk.rows
        if crc32(file.read(), frame) != part.frame_crc:
            problems.append(f"{part.file}: Arrow's header or footer is damaged.")
    return problems
