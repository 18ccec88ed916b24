"""Images with their boxes, scaled and mirrored, and batches of them padded to one size."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hotlap_workloads.engine.order import Draw
from hotlap_workloads.parts.coco_json import CocoSet
from hotlap_workloads.parts.image_file import Pixels
from hotlap_workloads.tiny_detr.augment_sample import SampleAugment
from hotlap_workloads.tiny_detr.files import resized
from hotlap_workloads.tiny_detr.settings import TinySettings
from hotlap_workloads.tiny_detr.shapes import STEP_PX, fitted, padded

__all__ = ["MEAN", "STD", "EvalImages", "Padder", "Sample", "TrainImages"]

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet, with which backbones are trained."""


class Sample(NamedTuple):
    """``image`` (3, height, width), bytes or normalised floats; boxes as middle and size, in shares of the image."""

    image: NDArray[Any]
    boxes: NDArray[np.float32]
    labels: NDArray[np.int64]


class TrainImages:
    """Random short side and mirroring; with augment=sample also CLAHE, blur and normalisation.

    With padding=bucket a batch shares one short side, so that images of one shape stay of one shape.
    """

    def __init__(self, coco: CocoSet, read: Callable[[int], Pixels], s: TinySettings) -> None:
        self.coco, self.read, self.s = coco, read, s
        self.targets = [_targets(coco, row) for row in range(len(coco.paths))]
        self.change = SampleAugment(s.clahe, s.motion_blur) if s.augment == "sample" else None

    def __len__(self) -> int:
        return len(self.coco.paths)

    def __getitem__(self, draw: Draw) -> Sample:
        return self.load(draw, self.short(draw))

    def __getitems__(self, draws: Sequence[Draw]) -> list[Sample]:
        shared = self.s.padding == "bucket"
        return [self.load(draw, self.short(draws[0] if shared else draw)) for draw in draws]

    def short(self, draw: Draw) -> int:
        """The short side: any multiple of 32 from size_low to size_high, all equally likely."""
        if not self.s.multi_scale:
            return self.s.size
        return random.Random(draw.seed).choice(range(self.s.size_low, self.s.size_high + 1, STEP_PX))

    def load(self, draw: Draw, short: int) -> Sample:
        dice = random.Random(~draw.seed)
        pixels = resized(self.read(draw.row), fitted(self.coco.sizes[draw.row], short, self.s.longest))
        boxes, labels = self.targets[draw.row]
        if self.s.flip and dice.random() < 0.5:
            pixels, boxes = pixels[:, ::-1], np.concatenate([1 - boxes[:, :1], boxes[:, 1:]], axis=1)
        if self.change is None:
            return Sample(pixels.transpose(2, 0, 1), boxes, labels)
        changed = self.change(np.ascontiguousarray(pixels), dice).astype(np.float32) / 255
        normal = (changed - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
        return Sample(normal.transpose(2, 0, 1), boxes, labels)


class EvalImages:
    """Images at the size of the evaluation, as bytes, without boxes: those are compared in pixels of the file."""

    def __init__(self, coco: CocoSet, read: Callable[[int], Pixels], s: TinySettings) -> None:
        self.coco, self.read, self.s = coco, read, s

    def __len__(self) -> int:
        return len(self.coco.paths)

    def __getitem__(self, row: int) -> Sample:
        pixels = resized(self.read(row), fitted(self.coco.sizes[row], self.s.size, self.s.longest))
        return Sample(pixels.transpose(2, 0, 1), np.zeros((0, 4), np.float32), np.zeros(0, np.int64))


class Padder:
    """Samples to a batch: images in the upper left corner of a canvas, the boxes of all images one behind the other.

    ``owner`` says which image each box is of; ``counts`` has the boxes of each image, for the host. ``worst`` is the
    size to pad to, None for the batch's own.
    """

    def __init__(self, worst: tuple[int, int] | None) -> None:
        self.worst = worst

    def __call__(self, samples: Sequence[Sample]) -> dict[str, Any]:
        sizes = [(sample.image.shape[2], sample.image.shape[1]) for sample in samples]
        width, height = self.worst or padded(sizes)
        images = np.zeros((len(samples), 3, height, width), samples[0].image.dtype)
        for canvas, sample, (wide, tall) in zip(images, samples, sizes, strict=True):
            canvas[:, :tall, :wide] = sample.image
        counts = [len(sample.labels) for sample in samples]
        return {
            "images": torch.from_numpy(images),
            "sizes": torch.tensor([(tall, wide) for wide, tall in sizes]),
            "boxes": torch.from_numpy(np.concatenate([sample.boxes for sample in samples])),
            "labels": torch.from_numpy(np.concatenate([sample.labels for sample in samples])),
            "owner": torch.repeat_interleave(torch.arange(len(samples)), torch.tensor(counts)),
            "counts": counts,
        }


def _targets(coco: CocoSet, row: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Middle and size in shares of the image, cut to it. Crowds are not learned."""
    objects, (width, height) = coco.objects[row], coco.sizes[row]
    single = ~objects.crowd
    begin = np.clip(objects.boxes[single, :2], 0, [width, height])
    end = np.clip(objects.boxes[single, :2] + objects.boxes[single, 2:], 0, [width, height])
    boxes = np.concatenate([(begin + end) / 2, end - begin], axis=1) / [width, height, width, height]
    return boxes.astype(np.float32), objects.labels[single]
