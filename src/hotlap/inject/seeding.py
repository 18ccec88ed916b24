"""Seeds of a trial: start from a known one, and shift every seed that the script sets by the trial's offset."""

from __future__ import annotations

import random
import threading
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
    inside = threading.local()  # torch.manual_seed hands its seed, shifted already, on to torch.cuda.manual_seed_all

    def shifted(seed_function: Any) -> Any:
        def seed(*args: Any, **kwargs: Any) -> Any:
            if vars(inside):
                return seed_function(*args, **kwargs)
            if args and isinstance(args[0], int):
                args = (args[0] + shift, *args[1:])
            elif isinstance(kwargs.get("seed"), int):
                kwargs["seed"] = kwargs["seed"] + shift
            inside.seeding = True
            try:
                return seed_function(*args, **kwargs)
            finally:
                del inside.seeding

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
        for name in ("manual_seed", "manual_seed_all"):  # a script may seed the device after torch.manual_seed
            undo.replace(torch.cuda, name, shifted(getattr(torch.cuda, name)))
            undo.replace(torch.cuda.random, name, getattr(torch.cuda, name))
        undo.replace(random, "seed", shifted(random.seed))
    on_import("numpy.random", numpy_ready)
