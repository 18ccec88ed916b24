"""Which query answers for which object: the cheapest assignment, image by image and layer by layer (Kuhn 1955)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from hotlap_workloads.parts.boxes import corners, giou
from hotlap_workloads.tiny_detr.settings import TinySettings

__all__ = ["costs", "match"]

NOBODY = -1
"""No query is left for the object: the image has more objects than there are queries."""


@torch.no_grad()
def match(logits: Tensor, boxes: Tensor, batch: dict[str, Any], s: TinySettings) -> Tensor:
    """(layers, objects): the query of each object, NOBODY where none is left; on the device of ``logits``."""
    counts: Sequence[int] = batch["counts"]
    if s.matching == "at_once":
        found = _assigned(costs(logits, boxes, batch, s).cpu().numpy(), counts)
    else:
        found = _one_by_one(logits, boxes, batch, s)
    return torch.from_numpy(found).to(logits.device, non_blocking=True)


def costs(logits: Tensor, boxes: Tensor, batch: dict[str, Any], s: TinySettings) -> Tensor:
    """(layers, objects, queries): what it costs that a query answers for an object of its image.

    ``logits`` are (layers, batch, queries, classes + 1), ``boxes`` (layers, batch, queries, 4). Only queries of an
    object's own image are computed, and no padding of images with few objects.
    """
    owner, labels, wanted = batch["owner"], batch["labels"], batch["boxes"]
    probability = logits.softmax(-1)[:, owner, :, labels].transpose(0, 1)
    offered = boxes[:, owner]
    distance = (offered - wanted[:, None]).abs().sum(-1)
    overlap = giou(corners(offered), corners(wanted)[:, None])
    cost: Tensor = s.cost_box * distance - s.cost_class * probability - s.cost_giou * overlap
    return cost


def _assigned(cost: NDArray[Any], counts: Sequence[int]) -> NDArray[np.int64]:
    """A cost that is no number becomes a large one: the loss will not be a number either, and be reported."""
    cost = np.nan_to_num(cost, nan=1e9, posinf=1e9, neginf=-1e9)
    found = np.full(cost.shape[:2], NOBODY, np.int64)
    ends = np.cumsum(counts)
    for layer, of_layer in enumerate(cost):
        for begin, end in zip(ends - counts, ends, strict=True):
            objects, queries = linear_sum_assignment(of_layer[begin:end])
            found[layer, begin + objects] = queries
    return found


def _one_by_one(logits: Tensor, boxes: Tensor, batch: dict[str, Any], s: TinySettings) -> NDArray[np.int64]:
    """The host waits for the device at every image of every layer."""
    found = np.full((len(logits), len(batch["labels"])), NOBODY, np.int64)
    for layer in range(len(logits)):
        end = 0
        for image, count in enumerate(batch["counts"]):
            begin, end = end, end + count
            part = {name: batch[name][begin:end] for name in ("labels", "boxes", "owner")}
            part["owner"] = torch.zeros_like(part["owner"])
            own = (slice(layer, layer + 1), slice(image, image + 1))
            cost = costs(logits[own], boxes[own], part, s).cpu().numpy()
            found[layer, begin:end] = _assigned(cost, [count])[0]
    return found
