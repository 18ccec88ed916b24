"""One process or several: who am I, and the few things ranks tell each other."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import distributed as dist

__all__ = ["Ranks", "alone", "joined", "together"]

T = TypeVar("T")

PATIENCE = timedelta(days=1)
"""How long ranks wait for each other. The first one stages or decodes all data while the others stand at a barrier."""


@dataclass(frozen=True)
class Ranks:
    """``rank`` of ``world`` processes; ``local`` counts within this machine and picks the GPU."""

    rank: int = 0
    world: int = 1
    local: int = 0

    @property
    def first(self) -> bool:
        """The one that writes, prints and tracks."""
        return self.rank == 0

    def any(self, mine: bool, device: torch.device) -> bool:
        """Whether it is so on any rank. Every rank must ask at the same step."""
        if self.world == 1:
            return mine
        flag = torch.tensor([float(mine)], device=device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def gather(self, mine: T) -> list[T]:
        """What each rank has, in the order of the ranks."""
        if self.world == 1:
            return [mine]
        out: list[Any] = [None] * self.world
        dist.all_gather_object(out, mine)
        return out

    def own_rows(self, count: int) -> range:
        """Those of so many rows that are this rank's to work on."""
        return range(self.rank, count, self.world)

    def all_rows(self, mine: Sequence[torch.Tensor], count: int) -> torch.Tensor:
        """On the CPU, what the ranks found for so many rows: ``mine`` are the batches of :meth:`own_rows`, in order.

        A rank has none where there are fewer rows than ranks, and one has some at least.
        """
        shares = self.gather(torch.cat(list(mine)).cpu() if mine else None)
        some = next(share for share in shares if share is not None)
        out = some.new_empty(count, *some.shape[1:])
        for rank, share in enumerate(shares):
            if share is not None:
                out[rank :: self.world] = share
        return out

    def share(self, tensors: Iterable[torch.Tensor]) -> None:
        """Give all ranks what the first one has, in place."""
        if self.world > 1:
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.world > 1:
            dist.barrier()


_alone = False


@contextmanager
def alone() -> Iterator[None]:
    """Within it each rank computes for itself, and waits for no other in the midst of a step."""
    global _alone
    _alone = True
    try:
        yield
    finally:
        _alone = False


def together() -> bool:
    """Whether a loss that adds up over ranks is of several of them now."""
    return not _alone and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


@contextmanager
def joined(on_gpu: bool) -> Iterator[Ranks]:
    """The ranks that ``torchrun`` started (gloo on CPUs, NCCL on GPUs), or this process alone."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks()
        return
    ranks = Ranks(int(os.environ["RANK"]), world, int(os.environ.get("LOCAL_RANK", "0")))
    if on_gpu:
        torch.cuda.set_device(ranks.local)
    dist.init_process_group("nccl" if on_gpu else "gloo", timeout=PATIENCE)
    try:
        yield ranks
        dist.barrier()  # a rank that leaves early takes the others' threads with it
    finally:
        gc.collect()  # DDP's cycles hold the group
        dist.destroy_process_group()
        _until_idle()


def _until_idle(limit_s: float = 5.0) -> None:
    """Until gloo's threads have let go of the last tensors, which takes the interpreter's lock.

    DDP's reducer keeps the group, and so the threads, to the end of the process (torch 2.13). One that asks for the
    lock when the interpreter is already gone aborts the process: "terminate called without an active exception".
    """
    latest = time.monotonic() + limit_s
    while _gloo_works() and time.monotonic() < latest:
        time.sleep(0.001)


def _gloo_works() -> bool:
    """Whether a thread of gloo's runs or waits for a processor (Linux; elsewhere nobody knows)."""
    for stat in Path("/proc/self/task").glob("*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        if "gloo" in name and rest.split()[0] == "R":
            return True
    return False
