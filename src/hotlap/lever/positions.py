"""Whether a loader says how far it has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["AHEAD", "tells_position"]

AHEAD = "it says how far it has come (state_dict), and batches fetched ahead would count as seen"


def tells_position(loader: DataLoader[Any]) -> bool:
    """Whether it, its data set or a sampler has the ``state_dict`` by which trainings go on in mid-epoch: batches that
    were drawn ahead would be left out by who goes on from there."""
    parts = (loader, loader.dataset, loader.sampler, loader.batch_sampler)
    return any(callable(getattr(part, "state_dict", None)) for part in parts)
