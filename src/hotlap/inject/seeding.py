"""Seeds of a trial: start from a known one, and shift every seed that the script sets by the trial's offset."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hotlap.probe.undo import Undo

__all__ = ["offset_seeds"]

STRIDE = 7919
"""A prime far above the usual small seeds, so that seed 0 with offset 1 is no seed of another offset."""

OnImport = Callable[[str, Callable[[ModuleType], None]], None]


def offset_seeds(offset: int, undo: Undo, on_import: OnImport) -> None:
    """Seed torch, random and numpy now, and add ``offset * 7919`` to the integer seeds that the script sets later.

    Both arms of a trial get the same start, so that their losses can be paired even where the script never seeds.
    """
    import torch

    shift = offset * STRIDE

    def shifted(seed_function: Any) -> Any:
        def seed(*args: Any, **kwargs: Any) -> Any:
            if args and isinstance(args[0], int):
                args = (args[0] + shift, *args[1:])
            elif isinstance(kwargs.get("seed"), int):
                kwargs["seed"] = kwargs["seed"] + shift
            return seed_function(*args, **kwargs)

        return seed

    def numpy_ready(module: ModuleType) -> None:
        module.seed(1 + shift)
        if shift:
            undo.replace(module, "seed", shifted(module.seed))
            undo.replace(module, "default_rng", shifted(module.default_rng))

    torch.manual_seed(1 + shift)
    random.seed(1 + shift)
    if shift:
        undo.replace(torch, "manual_seed", shifted(torch.manual_seed))
        undo.replace(torch.random, "manual_seed", torch.manual_seed)
        undo.replace(random, "seed", shifted(random.seed))
    on_import("numpy.random", numpy_ready)
