"""Whether it makes a difference when, and where, the samples of a loader are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.drawing import Drawing
from hotlap.lever.left_behind import read_of_draws

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["why_not_ahead"]


def why_not_ahead(loader: DataLoader[Any], drawing: Drawing) -> str | None:
    """Why samples of a loader without workers may not be drawn ahead of the step, or elsewhere; None where they may.

    The loader, its data set or a sampler may have the ``state_dict`` by which trainings go on in mid-epoch: batches
    that were drawn ahead would be left out by who goes on from there. Or the script reads what draws leave behind.
    """
    parts = (loader, loader.dataset, loader.sampler, loader.batch_sampler)
    if any(callable(getattr(part, "state_dict", None)) for part in parts):
        return "it says how far it has come (state_dict), and batches fetched ahead would count as seen"
    read = read_of_draws(drawing)
    if read is not None:
        return f"the script reads {read}, which drawing a sample sets: in a worker, or ahead of the step, it is another"
    return None
