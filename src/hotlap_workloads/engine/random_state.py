"""The state of every global random number generator, as plain data that a checkpoint holds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

__all__ = ["restore", "seed_all", "snapshot"]


def seed_all(seed: int) -> None:
    """Seed Python, NumPy and torch on all devices."""
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)


def snapshot() -> dict[str, Any]:
    """Tensors and plain values only, so that it loads without unpickling code."""
    kind, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    version, words, gauss_next = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [str(kind), torch.from_numpy(np.asarray(keys).astype(np.int64)), position, has_gauss, gauss],
        "python": [version, torch.tensor(words), gauss_next],
    }


def restore(state: dict[str, Any]) -> None:
    """Go on where ``snapshot`` was taken."""
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available():
        for device, words in enumerate(state["cuda"][: torch.cuda.device_count()]):  # there may be fewer than before
            torch.cuda.set_rng_state(words, device)
    kind, keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), position, has_gauss, gauss))
    version, words, gauss_next = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss_next))
