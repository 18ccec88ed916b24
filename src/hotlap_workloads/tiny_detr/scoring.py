"""Detections of a set of images, and their average precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotlap_workloads.engine.loader import in_order, to_device
from hotlap_workloads.engine.ranks import Ranks
from hotlap_workloads.parts.boxes import corners
from hotlap_workloads.parts.detection_ap import Found, average_precision
from hotlap_workloads.tiny_detr.data import EvalImages, Padder
from hotlap_workloads.tiny_detr.settings import TinySettings
from hotlap_workloads.tiny_detr.shapes import fitted

__all__ = ["Scorer"]


@dataclass(frozen=True)
class Scorer:
    """Finds objects in each rank's share of the images. ``prepare`` makes (images, inside) of a batch."""

    net: nn.Module
    prepare: Callable[[dict[str, Any]], tuple[Tensor, Tensor]]
    images: EvalImages
    padder: Padder
    device: torch.device
    ranks: Ranks
    s: TinySettings

    def found(self) -> list[Found]:
        """The detections of every image, on every rank."""
        s, batches = self.s, self._batches()[self.ranks.rank :: self.ranks.world]
        rows, pin = [row for batch in batches for row in batch], s.pin_memory and self.device.type == "cuda"
        answers: list[np.ndarray[Any, Any]] = []
        for batch in in_order(self.images, rows, s.eval_batch_size, s.eval_workers, pin, self.padder):
            answers.extend(self.detect(to_device(batch, self.device, s.non_blocking)).cpu().double().numpy())
        mine = dict(zip(rows, answers, strict=True))
        everywhere = {row: answer for share in self.ranks.gather(mine) for row, answer in share.items()}
        return [self._in_pixels(row, everywhere[row]) for row in range(len(self.images))]

    def detect(self, batch: dict[str, Any]) -> Tensor:
        """(batch, detections, 6): corners in shares of the image, score, class; one class per query, best first."""
        logits, boxes = self.net(*self.prepare(batch))
        scores, labels = logits[-1].softmax(-1)[..., :-1].max(-1)
        scores, best = scores.topk(min(self.s.most_detections, scores.shape[1]))
        chosen = corners(boxes[-1]).clamp(0, 1).gather(1, best[..., None].expand(-1, -1, 4))
        return torch.cat([chosen, scores[..., None], labels.gather(1, best)[..., None]], dim=-1)

    def measure(self) -> dict[str, float]:
        """``ap``, ``ap50``, ``ap_small``, 0 to 1."""
        return average_precision(self.images.coco.objects, self.found(), self.s.most_detections)

    def _batches(self) -> list[list[int]]:
        """Images of like size together, so that little is padded."""
        sizes = [fitted(size, self.s.size, self.s.longest) for size in self.images.coco.sizes]
        rows = list(range(len(sizes)))
        if self.s.padding == "bucket":
            rows.sort(key=lambda row: sizes[row])
        count = self.s.eval_batch_size
        return [rows[begin : begin + count] for begin in range(0, len(rows), count)]

    def _in_pixels(self, row: int, answer: np.ndarray[Any, Any]) -> Found:
        width, height = self.images.coco.sizes[row]
        begin, end = answer[:, :2] * [width, height], answer[:, 2:4] * [width, height]
        boxes = np.concatenate([begin, end - begin], axis=1)
        return Found(boxes, answer[:, 5].astype(np.int64), answer[:, 4])
