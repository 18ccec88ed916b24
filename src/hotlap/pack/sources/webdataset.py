"""WebDataset tars: files that share a name up to the first dot are one row. Read in place, never unpacked to disk."""

from __future__ import annotations

import json
import os
import re
import tarfile
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from hotlap.pack.sources.contract import BadRow
from hotlap.pack.sources.files import ImageReader, check_names, is_encoded
from hotlap.pack.sources.options import AUDIO, IMAGES, STORE, SourceOptions
from hotlap.pack.sources.read import stamp
from hotlap.records.errors import HotlapError

__all__ = ["TarSource", "expand_braces"]

_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
"""How files begin that gzip, bzip2, xz and zstd wrote."""


def expand_braces(spec: str) -> list[str]:
    """``shard-{0000..0003}.tar`` as WebDataset writes it."""
    found = re.search(r"\{(\d+)\.\.(\d+)\}", spec)
    if found is None:
        return [spec]
    width = len(found[1])
    numbers = range(int(found[1]), int(found[2]) + 1)
    return [
        name for n in numbers for name in expand_braces(f"{spec[: found.start()]}{n:0{width}d}{spec[found.end() :]}")
    ]


def _is(suffix: str, known: tuple[str, ...]) -> bool:
    """Whether a suffix (all behind the first dot) ends in one of a kind of file."""
    return f".{suffix.rsplit('.', 1)[-1]}" in known


def _advice(path: str) -> str:
    if not os.path.isfile(path):
        return "Name files that are there: {0000..0003} stands for four of them."
    with open(path, "rb") as file:
        head = file.read(6)
    if head.startswith(_PACKED):
        return "Compressed tars must be unpacked first: the rows of others are read in place."
    return "Is it whole, and a tar? Get or make it again."


class TarSource:
    """Rows of one or more local tars; the headers are read once, the contents when asked for."""

    may_fork = True

    def __init__(self, spec: str, options: SourceOptions) -> None:
        self._paths = expand_braces(spec)
        self.metadata: dict[str, Any] = {"source": spec}
        self.ragged: frozenset[str] = frozenset()
        self._rows: list[tuple[str, int, dict[str, tuple[int, int]]]] = []
        for number, path in enumerate(self._paths):
            self._index(number, path)
        if not self._rows:
            raise HotlapError(f"{spec} holds no files.")
        check_names(spec, (key for key, _, _ in self._rows))
        self._seen: dict[tuple[int, str], int] = {}
        """Keys begin again in many a shard."""
        for index, (key, number, _) in enumerate(self._rows):
            self._seen.setdefault((number, key), index)
        has_images = any(_is(suffix, IMAGES) for _, _, fields in self._rows for suffix in fields)
        self._by_suffix = {known for known in (IMAGES, AUDIO) if self._have_two(known)}
        encoded = not has_images or is_encoded(options, self._picture, len(self._rows))
        self._image = ImageReader(encoded, options, IMAGES in self._by_suffix)
        sounds = {suffix for _, _, fields in self._rows for suffix in fields if _is(suffix, AUDIO)}
        if has_images:
            self.metadata |= self._image.metadata
        store = "encoded" if options.store == "encoded" else "raw"
        if sounds and self.metadata.setdefault(STORE, store) != store:
            del self.metadata[STORE]  # encoded images beside decoded recordings
        if store == "raw":
            self.ragged = frozenset(self._column(suffix, AUDIO, "audio") for suffix in sounds)

    def _have_two(self, known: tuple[str, ...]) -> bool:
        """Whether a row has two files of a kind (an image and its mask): then each has a column of its own."""
        return any(sum(_is(suffix, known) for suffix in fields) > 1 for _, _, fields in self._rows)

    def _column(self, suffix: str, known: tuple[str, ...], usual: str) -> str:
        return suffix if known in self._by_suffix else usual

    def _index(self, number: int, path: str) -> None:
        try:
            with tarfile.open(path, "r:") as tar:
                for member in tar:
                    if not member.isfile() or PurePosixPath(member.name).name.startswith("."):
                        continue
                    folder, base = os.path.split(member.name)
                    stem, _, suffix = base.partition(".")
                    key = f"{folder}/{stem}" if folder else stem
                    suffix = suffix.lower()
                    if not self._rows or self._rows[-1][:2] != (key, number) or suffix in self._rows[-1][2]:
                        self._rows.append((key, number, {}))
                    self._rows[-1][2][suffix] = (member.offset_data, member.size)
                end = tar.offset
            self._check_end(path, end)
        except (OSError, tarfile.TarError) as err:
            reason = (isinstance(err, OSError) and err.strerror) or err
            raise HotlapError(f"{path} cannot be read: {reason}.", _advice(path)) from err

    @staticmethod
    def _check_end(path: str, end: int) -> None:
        """tarfile takes a header that it cannot read for the end of the tar. At a true end are zeros, or nothing."""
        with open(path, "rb") as file:
            file.seek(end)
            if any(file.read(tarfile.BLOCKSIZE)):
                raise HotlapError(f"{path} is damaged at byte {end}: no file begins there.", "Get or make it again.")

    def __len__(self) -> int:
        return len(self._rows)

    def name(self, index: int) -> str:
        key, number, _ = self._rows[index]
        return f"{self._paths[number]}:{key}"

    def _picture(self, index: int) -> bytes:
        """The first image of a row."""
        key, _, fields = self._rows[index]
        suffix = next((suffix for suffix in fields if _is(suffix, IMAGES)), None)
        if suffix is None:
            raise BadRow(f"{key} has no image")
        return self._content(index, suffix)

    def _content(self, index: int, suffix: str) -> bytes:
        key, number, fields = self._rows[index]
        if suffix not in fields:
            raise BadRow(f"{key} has no .{suffix}")
        offset, size = fields[suffix]
        with open(self._paths[number], "rb") as file:
            file.seek(offset)
            content = file.read(size)
        if len(content) != size or size == 0:
            raise BadRow(f"{key}.{suffix} has {len(content)} of {size} bytes")
        return content

    def row(self, index: int) -> dict[str, Any]:
        key, number, fields = self._rows[index]
        if (first := self._seen[number, key]) != index:
            raise BadRow(f"{key} is there twice (rows {first} and {index}).")
        row: dict[str, Any] = {}
        for suffix in fields:
            row |= self._field(suffix, self._content(index, suffix))
        return {**row, "name": key}

    def _field(self, suffix: str, content: bytes) -> dict[str, Any]:
        from hotlap.pack.sources.decode import decode_audio

        last = suffix.rsplit(".", 1)[-1]
        if _is(suffix, IMAGES):
            return {self._column(suffix, IMAGES, "image"): self._image(content)["image"]}
        if _is(suffix, AUDIO):
            samples, rate = decode_audio(content)
            name = self._column(suffix, AUDIO, "audio")
            return {name: samples, "rate": rate} if name in self.ragged else {name: content}
        if last in ("cls", "cls2", "index"):
            return {"label" if last == "cls" else last: int(content)}
        if last == "json":
            json.loads(content)
            return {suffix: content.decode()}
        if last in ("txt", "text"):
            return {suffix: content.decode()}
        if last == "npy":
            import io

            return {suffix: np.load(io.BytesIO(content), allow_pickle=False)}
        if last in ("pyd", "pkl", "pickle", "pt", "pth"):
            raise BadRow(f".{suffix} is pickled: it is never unpickled.")
        return {suffix: content}

    def fingerprint(self) -> str:
        marks = [(p, stamp(p)) for p in self._paths]
        return f"tar {marks} {self._image.mark} {sorted(self.ragged)}"
