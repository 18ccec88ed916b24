"""Images by number as bytes, (images, 3, size, size): decoded whenever they are used, or gathered from a pack."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from hotlap.pack import HotlapError, Pack, PackSettings, pack
from hotlap.pack.gather import gather_rows
from hotlap.pack.manifest import MANIFEST
from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.image_file import open_rgb
from hotlap_workloads.twin_verify.album import Album

__all__ = ["FromFiles", "FromPack", "ImageSource", "Pixels", "pack_images", "read_sized"]


class Pixels(Protocol):
    """Images by their numbers in the album."""

    def __call__(self, numbers: Sequence[int]) -> Tensor: ...


def read_sized(path: Path, size: int) -> NDArray[np.uint8]:
    """(3, size, size), RGB by planes, resized with bilinear weights over all pixels that it covers."""
    image = open_rgb(path, path)
    if image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


@dataclass(frozen=True)
class FromFiles:
    """Reads, decodes and resizes the file at every use."""

    paths: Sequence[Path]
    size: int

    def __call__(self, numbers: Sequence[int]) -> Tensor:
        return torch.from_numpy(np.stack([read_sized(self.paths[number], self.size) for number in numbers]))


class FromPack:
    """Copies rows of the memory map. A loading process opens the pack anew; nothing is sent to it.

    ``hint``: what to do where it is damaged.
    """

    def __init__(self, folder: Path, hint: str = "Remove it: the training makes it again.") -> None:
        self._folder, self._hint = folder, hint
        try:
            self._pack = Pack(folder)
            numbers = self._pack.values("number")
        except HotlapError as err:
            raise DataError(folder, f"is no whole pack: {err}", hint) from err
        self._row = np.full(int(numbers.max()) + 1, -1, np.int64)
        self._row[numbers] = np.arange(len(numbers))

    @property
    def size(self) -> int:
        """Height and width of the images."""
        return int(self._pack.column("image").shape[-1])

    def __call__(self, numbers: Sequence[int]) -> Tensor:
        try:
            return gather_rows(self._pack, "image", self._pack.rows(self._row[list(numbers)]))
        except HotlapError as err:
            raise DataError(self._folder, str(err), self._hint) from err

    def __reduce__(self) -> tuple[type[FromPack], tuple[Path, str]]:
        return FromPack, (self._folder, self._hint)


class ImageSource:
    """What hotlap.pack packs: every image once, with its number."""

    def __init__(self, paths: list[Path], numbers: list[int], size: int) -> None:
        self.paths, self.numbers, self.size = paths, numbers, size
        self.ragged: frozenset[str] = frozenset()
        self.metadata: dict[str, Any] = {"image_size": size}

    def __len__(self) -> int:
        return len(self.numbers)

    def name(self, index: int) -> str:
        return str(self.paths[self.numbers[index]])

    def row(self, index: int) -> dict[str, Any]:
        number = self.numbers[index]
        return {"image": read_sized(self.paths[number], self.size), "number": np.int64(number)}

    def fingerprint(self) -> str:
        """Paths, sizes and times of all files."""
        files = [self.paths[number] for number in self.numbers]
        facts = [[str(path), (status := path.stat()).st_size, status.st_mtime_ns] for path in files]
        return json.dumps([self.size, self.numbers, facts])


def pack_images(album: Album, size: int, folder: Path, processes: int = 1) -> None:
    """Pack the album's images into ``folder``, unless that has been done. Interrupted, it goes on where it was."""
    source = ImageSource(album.paths, album.used(), size)
    key = folder.with_name(f"{folder.name}.files.json")
    try:
        wanted = source.fingerprint()
    except OSError as err:
        raise DataError(err.filename, f"cannot be read: {err.strerror}.") from err
    if not (key.exists() and key.read_text(encoding="utf-8") == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        key.parent.mkdir(parents=True, exist_ok=True)
        key.write_text(wanted, encoding="utf-8")
    if (folder / MANIFEST).exists():
        return
    try:
        pack(source, folder, PackSettings(processes=processes))
    except HotlapError as err:
        raise _as_data_error(err, folder) from err


def _as_data_error(err: HotlapError, folder: Path) -> DataError:
    """The reader's own error where that stopped the packing: it names the file."""
    cause = err.__cause__
    return cause if isinstance(cause, DataError) else DataError(folder, str(err))
