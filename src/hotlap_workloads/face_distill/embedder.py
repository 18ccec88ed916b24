"""Embeddings of many photos and of their mirror images, shared among the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader

from hotlap_workloads.engine.loader import as_batch, outlive_sigterm
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
        mine = list(range(ranks.rank, len(squares), ranks.world))
        parts = []
        for images in self._loader(squares, name, mine):
            x = as_input(images.to(device, non_blocking=True))
            both = self.net(torch.cat([x, x.flip(3)])).float().cpu()
            parts.append(torch.stack(both.chunk(2), dim=1))
        shares = ranks.gather((mine, torch.cat(parts) if parts else None))
        found = [(rows, part) for rows, part in shares if part is not None]
        out = torch.empty(len(squares), *found[0][1].shape[1:])
        for rows, part in found:
            out[rows] = part
        return out[:, 0].numpy(), out[:, 1].numpy()

    def _loader(self, squares: Squares, name: str, mine: list[int]) -> DataLoader[Any]:
        reader: Any = _Decoded(squares)
        if self.once:
            if name not in self.opened:
                self.opened[name] = PackedFaces(packed(squares, self.context.out / f"{name}.pack", self.context))
            reader = _Packed(self.opened[name])
        return DataLoader(
            reader,
            batch_size=self.batch_size,
            sampler=mine,
            num_workers=self.workers,
            collate_fn=as_batch if self.once else None,
            pin_memory=self.context.device.type == "cuda",
            worker_init_fn=outlive_sigterm,
            generator=torch.Generator(),
        )


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
