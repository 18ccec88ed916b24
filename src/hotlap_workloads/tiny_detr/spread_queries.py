"""Queries that begin at points spread over the image, each with its eyes on what is near it.

DETR's own begin anywhere, and need hundreds of passes over a large data set until each has found its region (Carion et
al. 2020 train for 500). Points of their own shorten that tenfold (Wang et al. 2022, Anchor DETR, section 3.2): a query
has the code of a place, and its box is told from there.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["place_code", "points", "spread"]

PERIOD = 10_000
"""DETR's code of places: the longest of its waves in units of the shortest (``temperature`` in the library)."""
SHARP = 2.0
"""Factor of the first look's projections, by which a query looks at few places from the first step on. Chosen by
hand: on blood cells boxes were found sooner with it, in one run each."""


def points(count: int) -> Tensor:
    """(count, 2): x and y in shares of the image, in even rows, as many to a row as its shape of 4 by 3 asks for."""
    columns = math.ceil(math.sqrt(count * 4 / 3))
    rows = math.ceil(count / columns)
    ys, xs = torch.meshgrid((torch.arange(rows) + 0.5) / rows, (torch.arange(columns) + 0.5) / columns, indexing="ij")
    every = torch.stack([xs.flatten(), ys.flatten()], dim=1)
    return every[torch.linspace(0, len(every) - 1, count).round().long()]


def place_code(where: Tensor, width: int) -> Tensor:
    """(count, width): what DETR adds to its feature map at these points (count, 2): y's waves, then x's.

    The library tells a place by its far edge, so that a point has the code of half a place before it.
    """
    number = torch.arange(width // 2)
    waves = PERIOD ** (2 * number.div(2, rounding_mode="floor") / (width // 2))
    angle = where.flip(1)[..., None] * 2 * math.pi / waves
    return torch.stack([angle[..., 0::2].sin(), angle[..., 1::2].cos()], dim=3).flatten(1)


def spread(detr: Any) -> Tensor:
    """Let the queries of the library's ``DetrForObjectDetection`` begin at :func:`points`, each looking at its own.

    Returns what is added to the boxes before their sigmoid, (queries, 4): a box begins around its query's point.
    """
    queries = detr.model.query_position_embeddings.weight
    where = points(len(queries))
    last = detr.bbox_predictor.layers[-1]
    with torch.no_grad():
        queries.copy_(place_code(where, queries.shape[1]))
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias[:2])
        for layer in detr.model.decoder.layers:
            look = layer.encoder_attn
            look.q_proj.weight.mul_(SHARP)
            look.k_proj.weight.copy_(look.q_proj.weight)  # alike codes meet
    return torch.cat([torch.logit(where), torch.zeros_like(where)], dim=1)
