"""The training set: half of the photos mirrored, one by one from files, or whole batches of bytes from a pack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotlap.pack import HotlapError, Pack
from hotlap.pack.gather import gather_rows
from hotlap_workloads.engine.order import Draw
from hotlap_workloads.errors import DataError
from hotlap_workloads.face_distill.squares import Squares
from hotlap_workloads.face_distill.teacher_bank import TeacherBank

__all__ = ["DecodedFaces", "PackedFaces", "as_input", "is_mirrored"]


def is_mirrored(draw: Draw) -> bool:
    """Half of all draws."""
    return bool(draw.seed & 1)


class DecodedFaces:
    """A photo at a time: read, decode; mirrored and made floats here, or left to the device."""

    def __init__(self, squares: Squares, finished: bool) -> None:
        self.squares, self.finished = squares, finished

    def __len__(self) -> int:
        return len(self.squares)

    def __getitem__(self, draw: Draw) -> dict[str, Any]:
        pixels, label = self.squares(draw.row)
        if not self.finished:
            bytes_first = torch.from_numpy(pixels.transpose(2, 0, 1).copy())
            return {"image": bytes_first, "label": label, "flip": is_mirrored(draw)}
        if is_mirrored(draw):
            pixels = pixels[:, ::-1]
        floats = pixels.transpose(2, 0, 1).astype(np.float32) / np.float32(127.5) - np.float32(1)
        return {"image": torch.from_numpy(np.ascontiguousarray(floats)), "label": label}


class PackedFaces:
    """Whole batches of bytes, (batch, 3, size, size) channels-last, with what the teacher said of them if it is known.

    Each process opens the pack for itself.
    """

    def __init__(self, folder: Path, bank: TeacherBank | None = None) -> None:
        self.folder, self.bank = folder, bank
        self._pack: Pack | None = None

    @property
    def pack(self) -> Pack:
        if self._pack is None:
            try:
                self._pack = Pack(self.folder)
            except HotlapError as err:
                raise DataError(self.folder, f"is no whole pack: {err}", "Remove it: it is made again.") from err
        return self._pack

    def __len__(self) -> int:
        return len(self.pack)

    def images(self, rows: Sequence[int]) -> Tensor:
        """(rows, 3, size, size), uint8."""
        return self._column("image", rows).permute(0, 3, 1, 2)

    def _column(self, name: str, rows: Sequence[int]) -> Tensor:
        try:
            return gather_rows(self.pack, name, self.pack.rows(rows))
        except HotlapError as err:
            raise DataError(self.folder, str(err)) from err

    def __getitems__(self, draws: Sequence[Draw]) -> dict[str, Tensor]:
        rows = [draw.row for draw in draws]
        flips = torch.tensor([is_mirrored(draw) for draw in draws])
        batch = {"image": self.images(rows), "flip": flips}
        batch["label"] = self._column("label", rows).long()
        if self.bank is not None:
            batch["teacher"] = self.bank.read(rows, flips.numpy())
        return batch

    def __getitem__(self, draw: Draw) -> dict[str, Tensor]:
        return {name: values[0] for name, values in self.__getitems__([draw]).items()}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pack": None}


def as_input(images: Tensor, flips: Tensor | None = None) -> Tensor:
    """Floats in -1 to 1 from bytes, mirrored where ``flips`` says so; floats pass as they are."""
    if flips is not None:
        images = torch.where(flips[:, None, None, None], images.flip(3), images)
    return images if images.is_floating_point() else images.float() / 127.5 - 1
