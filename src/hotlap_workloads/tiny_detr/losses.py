"""The set loss of DETR (Carion et al. 2020, section 3.1), at all layers of the decoder at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F

from hotlap_workloads.engine.ranks import together
from hotlap_workloads.parts.boxes import corners, giou
from hotlap_workloads.tiny_detr.matching import NOBODY, match
from hotlap_workloads.tiny_detr.settings import TinySettings

__all__ = ["SetLoss"]


class SetLoss(nn.Module):
    """Cross-entropy of all queries, L1 and GIoU of the matched ones; the sum over layers, each with its own matching.

    Boxes are summed over the batch and divided by the number of objects, of all ranks together.
    """

    def __init__(self, s: TinySettings, classes: int) -> None:
        super().__init__()
        self.s, self.classes = s, classes

    def forward(self, logits: Tensor, boxes: Tensor, batch: dict[str, Any]) -> dict[str, Tensor]:
        """``logits`` (layers, batch, queries, classes + 1), ``boxes`` (layers, batch, queries, 4), both fp32."""
        layers, images, queries, _ = logits.shape
        owner, matched = batch["owner"], match(logits, boxes, batch, self.s)
        layer = torch.arange(layers, device=logits.device)[:, None]
        # who has no query writes into a column behind the last one, which is cut off
        wanted = torch.full((layers, images, queries + 1), self.classes, device=logits.device)
        wanted[layer, owner, matched.where(matched != NOBODY, queries)] = batch["labels"].expand(layers, -1)
        wanted = wanted[..., :queries]
        said = F.cross_entropy(logits.flatten(0, 2), wanted.flatten(), reduction="none").view(layers, -1)
        weight = torch.where(wanted == self.classes, self.s.no_object_weight, 1.0).view(layers, -1)
        of_class = (said * weight).sum(1) / weight.sum(1)

        offered = boxes[layer, owner, matched.clamp(min=0)]
        has_query = (matched != NOBODY).float()
        count = _mean_over_ranks(len(owner), logits.device).clamp(min=1.0)
        of_box = ((offered - batch["boxes"]).abs().sum(-1) * has_query).sum(1) / count
        of_giou = ((1 - giou(corners(offered), corners(batch["boxes"]))) * has_query).sum(1) / count
        total = (of_class + self.s.weight_box * of_box + self.s.weight_giou * of_giou).sum()
        return {"loss": total, "loss_class": of_class[-1], "loss_box": of_box[-1], "loss_giou": of_giou[-1]}


def _mean_over_ranks(objects: int, device: torch.device) -> Tensor:
    """DDP takes the mean of the ranks' gradients, so that objects are divided by their mean number."""
    count = torch.full((), float(objects), device=device)
    if together():
        distributed.all_reduce(count)
        count /= distributed.get_world_size()
    return count
