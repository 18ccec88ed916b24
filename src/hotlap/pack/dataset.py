"""``PackedDataset``: a pack for people who keep torch's ``DataLoader``; whole batches by ``__getitems__``.

DataLoader(PackedDataset("faces.pack", {"image": Image(crop=(112, 112))}), batch_size=128, collate_fn=as_is)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from hotlap.pack.draws import Draws
from hotlap.pack.reader import Pack
from hotlap.pack.views.contract import View, one_flip_share
from hotlap.pack.views.plain import Flat, Whole

__all__ = ["PackedDataset", "as_is"]


def as_is(batch: Any) -> Any:
    """For ``collate_fn``: the batch is one already."""
    return batch


class PackedDataset(Dataset[dict[str, Any]]):
    """Map-style. Crops and mirroring are drawn from torch's own generator, as its transforms do."""

    def __init__(self, pack: str | Path, views: Mapping[str, View | None] | None = None) -> None:
        self._path, self._views = Path(pack), views
        self._flip = one_flip_share(view for view in (views or {}).values() if view is not None)
        self._pack: Pack | None = None
        self._opened: dict[str, Any] = {}

    def _open(self) -> Pack:
        """Once per process: a mapping must not cross a spawn, and need not cross a fork."""
        if self._pack is None:
            pack = Pack(self._path)
            asked = self._views if self._views is not None else dict.fromkeys(pack.columns)
            self._opened = {name: view or Whole() for name, view in asked.items()}
            self._pack = pack  # last: another thread that finds it finds the views, too
        return self._pack

    def __len__(self) -> int:
        return len(self._open())

    def __getitems__(self, indices: Sequence[int]) -> dict[str, Any]:
        """A whole batch, in the order asked for except that mirrored samples come first."""
        pack = self._open()
        rows = pack.rows(np.asarray(indices))
        draws = Draws(int(torch.randint(1 << 62, ())), 0, np.arange(len(rows)))
        flipped = 0
        if self._flip:
            mirrored = draws.uniform("flip") < self._flip
            first = np.argsort(~mirrored, kind="stable")
            rows, draws, flipped = rows[first], draws.take(first), int(mirrored.sum())
        batch: dict[str, Any] = {}
        for name, view in self._opened.items():
            filler = view.open(pack, name, len(rows))
            batch |= filler.fill(filler.allocate(), rows, draws, flipped if view.flip_share else 0)
        return batch

    def __getitem__(self, index: int) -> dict[str, Any]:
        batch = self.__getitems__([index])
        whole = {name for name, view in self._opened.items() if isinstance(view, Flat)}  # one row is all that there is
        return {name: value if name in whole else value[0] for name, value in batch.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pack": None, "_opened": {}}
