"""How a loader works, apart from what it reads."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LoaderSettings"]


@dataclass(frozen=True)
class LoaderSettings:
    """Options of :class:`hotlap.pack.Loader` that most people never touch."""

    mode: str = "auto"
    """``background``: threads make batches ahead; ``inline``: the training's own thread, and those that torch keeps for
    it, make each when asked; ``auto``: whichever a short measurement at the start finds better beside this training."""
    threads: int | None = None
    """Background threads. None: one, and more (up to one per core, eight at most, with batches in an eighth of the
    memory) where the training waits for batches and more of them are measured to be quicker."""
    ahead: int = 2
    """Batches made ahead by background threads; each thread more is at work on one more, which the device does not see
    before its turn."""
    seed: int = 0
    """Of crops and mirroring. (The order has its own.)"""
    rank: int = 0
    world: int = 1
    read_ahead: int | None = None
    """Batches whose rows the kernel is asked to read early. None: 8 if the pack exceeds half of the memory, else 0."""
