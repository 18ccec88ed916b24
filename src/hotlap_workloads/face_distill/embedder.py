"""Embeddings of many photos and of their mirror images, shared among the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hotlap_workloads.engine.loader import as_batch, in_order
from hotlap_workloads.engine.task import Context
from hotlap_workloads.face_distill.data import PackedFaces, as_input
from hotlap_workloads.face_distill.squares import Squares, packed

__all__ = ["Embedder"]


@dataclass(frozen=True)
class Embedder:
    """Runs the student over photos. ``once`` packs them when they are first asked for, and reads the pack then on."""

    net: nn.Module
    context: Context
    batch_size: int
    workers: int
    once: bool
    opened: dict[str, PackedFaces] = field(default_factory=dict)
    """Packs by name: a second evaluation need not ask again whether they are whole."""

    def __call__(self, squares: Squares, name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(photos, dim) as they are, and mirrored; not normalised. ``name`` names the pack."""
        device, ranks = self.context.device, self.context.ranks
        mine, collate = ranks.own_rows(len(squares)), as_batch if self.once else None
        reader, on_gpu = self._reader(squares, name), device.type == "cuda"
        parts = []
        for images in in_order(reader, mine, self.batch_size, self.workers, on_gpu, collate):
            x = as_input(images.to(device, non_blocking=True))
            both = self.net(torch.cat([x, x.flip(3)])).float().cpu()
            parts.append(torch.stack(both.chunk(2), dim=1))
        out = ranks.all_rows(parts, len(squares))
        return out[:, 0].numpy(), out[:, 1].numpy()

    def _reader(self, squares: Squares, name: str) -> _Decoded | _Packed:
        if not self.once:
            return _Decoded(squares)
        if name not in self.opened:
            self.opened[name] = PackedFaces(packed(squares, self.context.out / f"{name}.pack", self.context))
        return _Packed(self.opened[name])


@dataclass(frozen=True)
class _Decoded:
    squares: Squares

    def __len__(self) -> int:
        return len(self.squares)

    def __getitem__(self, row: int) -> Tensor:
        return torch.from_numpy(self.squares(row)[0].transpose(2, 0, 1).copy())


@dataclass(frozen=True)
class _Packed:
    faces: PackedFaces

    def __len__(self) -> int:
        return len(self.faces)

    def __getitem__(self, row: int) -> Tensor:
        return self.faces.images([row])[0]

    def __getitems__(self, rows: Sequence[int]) -> Tensor:
        return self.faces.images(rows)
