"""Files, each one row: images or audio with any number of further columns (labels, speakers)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hotlap.pack.sources.contract import BadRow
from hotlap.pack.sources.decode import check_image, decode_audio, decode_image, image_size
from hotlap.pack.sources.options import AUDIO, IMAGES, LAYOUT, RESIZED, STORE, SourceOptions
from hotlap.pack.sources.read import inside, read_file, stamp
from hotlap.records.errors import HotlapError

__all__ = ["FileSource", "ImageReader", "all_one_size", "check_names", "is_encoded", "names_to_numbers"]

_PROBED = 32
"""Files whose headers decide whether all images have one size."""


class ImageReader:
    """An image file's bytes as a row's values, stored raw or encoded.

    ``several``: rows have more than one image, of which each may be a mask.
    """

    def __init__(self, encoded: bool, options: SourceOptions, several: bool = False) -> None:
        if several and options.size is not None:
            what = "--size does not go with rows of several images: of a mask, the numbers of classes would be mixed."
            raise HotlapError(what, "Leave it out, and resize them before.", exit_code=2)
        self.encoded, self.size, self._interleaved = encoded, options.size, options.interleaved
        self._several = several

    @property
    def mark(self) -> str:
        """For fingerprints: what it makes of a file."""
        return f"{self.encoded} {self.size} {self._interleaved}"

    @property
    def metadata(self) -> dict[str, str]:
        """How a pack holds the images: what is appended has to be read in the same way."""
        if self.encoded:
            return {STORE: "encoded"}
        resized = {RESIZED: f"{self.size[0]}x{self.size[1]}"} if self.size else {}
        return {STORE: "raw", LAYOUT: "interleaved" if self._interleaved else "planar", **resized}

    def __call__(self, content: bytes) -> dict[str, Any]:
        if self.encoded:
            check_image(content)  # damage shows now, not in the training
            return {"image": content}
        array = decode_image(content, self.size, palettes=not self._several)
        return {"image": array.transpose(1, 2, 0) if self._interleaved else array}


def all_one_size(contents: Callable[[int], bytes], count: int) -> bool:
    """Whether some images spread over the source have the same size; unreadable ones do not count."""
    sizes = set()
    for index in range(0, count, max(1, count // _PROBED)):
        try:
            sizes.add(image_size(contents(index)))
        except BadRow:
            continue
    return len(sizes) == 1


def is_encoded(options: SourceOptions, contents: Callable[[int], bytes], count: int) -> bool:
    """What ``--store`` comes to for images."""
    if options.store not in ("auto", "raw", "encoded"):
        raise HotlapError(f"--store is {options.store!r}; it is auto, raw or encoded.", exit_code=2)
    if options.store == "encoded" and options.size is not None:
        raise HotlapError("--size resizes decoded images: it does not go with --store encoded.", exit_code=2)
    if options.store == "auto" and options.size is None:
        return not all_one_size(contents, count)
    return options.store == "encoded"


def names_to_numbers(names: Sequence[str], known: Sequence[str] = ()) -> tuple[list[int], list[str]]:
    """Class names as numbers in sorted order, and the sorted names. ``known``: classes that may have no row."""
    classes = sorted({*names, *known}, key=lambda n: (not n.isdigit(), int(n) if n.isdigit() else 0, n))
    number = {name: k for k, name in enumerate(classes)}
    return [number[name] for name in names], classes


def check_names(place: str, names: Iterable[str]) -> None:
    """HotlapError where a name's bytes are no UTF-8: a pack keeps names as text."""
    for name in names:
        if not name.isascii() and name != (shown := name.encode("utf-8", "backslashreplace").decode()):
            raise HotlapError(f"{place}: the name '{shown}' is not UTF-8.", "Rename it (convmv does many at once).")


class FileSource:
    """Rows from files ``root/name`` plus ``columns`` (name -> one value per row)."""

    may_fork = True

    def __init__(self, root: str, names: Sequence[str], columns: dict[str, Sequence[Any]],
                 options: SourceOptions) -> None:  # fmt: skip
        if not names:
            raise HotlapError(f"No files to pack in {root}.", f"Known suffixes: {' '.join((*IMAGES, *AUDIO))}")
        self._root, self._names, self._columns = root, names, columns
        check_names(root, self._names)
        self._seen: dict[str, int] = {}
        for index, name in enumerate(self._names):
            self._seen.setdefault(name, index)
        self.metadata: dict[str, Any] = {"source": root}
        self.ragged: frozenset[str] = frozenset()
        if self._names[0].lower().endswith(AUDIO):
            self._reader: Callable[[bytes], dict[str, Any]] = self._encoded_audio
            self.metadata[STORE] = "encoded" if options.store == "encoded" else "raw"
            if options.store != "encoded":
                self._reader, self.ragged = self._audio, frozenset({"audio"})
        else:
            self._reader = image = ImageReader(is_encoded(options, self._content, len(self._names)), options)
            self.metadata |= image.metadata

    def __len__(self) -> int:
        return len(self._names)

    def name(self, index: int) -> str:
        return self._names[index]

    def _content(self, index: int) -> bytes:
        return read_file(inside(self._root, self._names[index]))

    @staticmethod
    def _audio(content: bytes) -> dict[str, Any]:
        samples, rate = decode_audio(content)
        return {"audio": samples, "rate": rate}

    @staticmethod
    def _encoded_audio(content: bytes) -> dict[str, Any]:
        decode_audio(content)
        return {"audio": content}

    def row(self, index: int) -> dict[str, Any]:
        name = self._names[index]
        if self._seen[name] != index:
            raise BadRow(f"{name} is listed twice (rows {self._seen[name]} and {index}).")
        return {
            **self._reader(self._content(index)),
            **{key: values[index] for key, values in self._columns.items()},
            "name": name,
        }

    def fingerprint(self) -> str:
        crc = zlib.crc32(repr(self._columns).encode())
        for name in self._names:
            try:
                mark = stamp(inside(self._root, name))
            except BadRow as err:
                mark = str(err)
            crc = zlib.crc32(f"{name}\0{mark}\0".encode(), crc)
        encoded = getattr(self._reader, "mark", "")
        return f"files {self._root} {len(self._names)} {crc:08x} {encoded} {sorted(self.ragged)}"
