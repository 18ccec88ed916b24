"""What every rival does with decoded samples before the training gets them: crop, mirror, stack, convert.

One place, so that all rivals do the same work with the same quick numpy code.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from loader_data import CLIP, CROP, SIDE

__all__ = ["collate", "finish", "window"]

Array = np.ndarray[Any, Any]


def window(kind: str, raw: Array) -> Array:
    """A random crop (mirrored half of the time) or clip of a decoded sample; nothing is copied yet."""
    if kind == "boxes":
        return raw
    if kind == "audio":
        begin = random.randrange(raw.shape[0] - CLIP + 1)
        return raw[begin : begin + CLIP]
    free = SIDE["images"] - CROP[0] + 1
    top, left = random.randrange(free), random.randrange(free)
    found = raw[:, top : top + CROP[0], left : left + CROP[1]]
    return found[:, :, ::-1] if random.random() < 0.5 else found


def finish(kind: str, stacked: torch.Tensor) -> torch.Tensor:
    """A batch of stored values as the floats a model takes."""
    return stacked.float().mul_(1 / 32768) if kind == "audio" else stacked.float()


def collate(kind: str, raws: Sequence[Any]) -> Any:
    """Decoded samples as a batch. For boxes a sample is (image, boxes), and the batch has their numbers too."""
    if kind != "boxes":
        return finish(kind, torch.from_numpy(np.stack([window(kind, raw) for raw in raws])))
    images = torch.from_numpy(np.stack([image for image, _ in raws])).float()
    boxes = torch.from_numpy(np.concatenate([found for _, found in raws]))
    return images, boxes, torch.tensor([len(found) for _, found in raws])
