"""A DataLoader's workers changed in place, before it is first iterated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.lever.contract import Setting, Target
from hotlap.lever.drawing import Drawing
from hotlap.lever.knob import Knob
from hotlap.lever.loader_contents import LoaderContents
from hotlap.lever.own_passes import keep_passes_apart
from hotlap.lever.positions import why_not_ahead
from hotlap.lever.worker_preparation import concerns_workers_alone
from hotlap.lever.worker_safety import can_use_workers, holds_open_file

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    from hotlap.lever.mid_pass import MidPass

__all__ = ["load_here", "load_in_workers", "without_workers"]

_PREFETCH = 2
"""What torch gives a loader that is made with workers; one that was made without has None, which they cannot use."""


def load_in_workers(target: Target, loader: DataLoader[Any], setting: Setting, passes: MidPass) -> None:
    """``workers`` processes, ``prefetch`` batches ahead each, ``torch_threads`` for the step. They stay alive from one
    pass to the next where it can be seen whether the script changes in between what they have copies of."""
    if not can_use_workers(loader):
        if holds_open_file(loader.dataset):
            target.unfit("the data set holds an open file, of which worker processes would share the place")
        return
    drawing = Drawing(loader) if loader.num_workers == 0 else None
    if drawing is not None and (why := why_not_ahead(loader, drawing)) is not None:
        target.unfit(why)
        return
    contents = LoaderContents(loader)
    if loader.num_workers == 0 and contents.generator is not None:
        target.unfit(f"each worker would draw the same from its copy of the script's own {contents.generator}")
        return
    if drawing is not None:
        passes.add(loader, drawing)
    if loader.num_workers != setting["workers"]:
        target.replace(loader, "num_workers", setting["workers"])
    prefetch = setting["prefetch"] or loader.prefetch_factor or _PREFETCH
    if loader.prefetch_factor != prefetch:
        target.replace(loader, "prefetch_factor", prefetch)
    if not loader.persistent_workers and contents.look() is not None:
        keep_passes_apart(target, loader, contents)
        target.replace(loader, "persistent_workers", True)
    elif not loader.persistent_workers:
        target.unfit("its workers begin anew in each pass: changes of what the data set holds could be missed")
    _set_threads(target, setting["torch_threads"])


def load_here(target: Target, loader: DataLoader[Any]) -> None:
    """No workers. Those of an IterableDataset may share it out among themselves; the script may prepare others for the
    data set."""
    from torch.utils.data import IterableDataset

    if loader.num_workers == 0 or isinstance(loader.dataset, IterableDataset):
        return
    prepared = loader.worker_init_fn is not None and not concerns_workers_alone(loader.worker_init_fn)
    if prepared or loader.timeout or loader.multiprocessing_context is not None:
        target.unfit("the loader prepares its workers in a way of its own")
        return
    without_workers(target, loader)


def without_workers(target: Target, loader: DataLoader[Any]) -> None:
    """From its next pass on."""
    target.replace(loader, "num_workers", 0)
    target.replace(loader, "prefetch_factor", None)
    target.replace(loader, "persistent_workers", False)


def _set_threads(target: Target, threads: int | None) -> None:
    import torch

    if threads is not None and torch.get_num_threads() != threads:
        target.replace(Knob(torch.get_num_threads, torch.set_num_threads), "value", threads)
