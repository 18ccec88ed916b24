"""The training put together: data, order, model, loss, evaluation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotlap_workloads.engine.order import Draw, Shuffled
from hotlap_workloads.engine.quarantine import quarantined
from hotlap_workloads.engine.scored_task import ScoredTask
from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError
from hotlap_workloads.parts.coco_json import CocoSet, read_coco
from hotlap_workloads.parts.flat_bank import flat_bank
from hotlap_workloads.parts.image_file import Pixels
from hotlap_workloads.tiny_detr.augment_batch import BatchAugment
from hotlap_workloads.tiny_detr.data import MEAN, STD, EvalImages, Padder, TrainImages
from hotlap_workloads.tiny_detr.files import FromFiles
from hotlap_workloads.tiny_detr.losses import SetLoss
from hotlap_workloads.tiny_detr.made_data import make_data
from hotlap_workloads.tiny_detr.model import TinyDetr
from hotlap_workloads.tiny_detr.presets import ALIASES, PRESETS, translated
from hotlap_workloads.tiny_detr.scoring import Scorer
from hotlap_workloads.tiny_detr.settings import TinySettings
from hotlap_workloads.tiny_detr.shapes import ShapeBuckets, fitted, padded

__all__ = ["WORKLOAD", "TinyObjective", "TinyTask"]


class TinyObjective(nn.Module):
    """A padded batch to its loss."""

    def __init__(self, net: TinyDetr, loss: SetLoss, augment: BatchAugment | None) -> None:
        super().__init__()
        self.net, self.loss, self.augment = net, loss, augment

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        logits, boxes = self.net(*self.prepare(batch, self.augment))
        said: dict[str, Tensor] = self.loss(logits, boxes, batch)
        return said

    @staticmethod
    def prepare(batch: dict[str, Any], augment: BatchAugment | None = None) -> tuple[Tensor, Tensor]:
        """Normalised images, 0 where no image is; and where they are. Floats are normalised already."""
        images, sizes = batch["images"], batch["sizes"]
        height, width = images.shape[2:]
        lines, columns = (torch.arange(n, device=images.device) for n in (height, width))
        inside = (lines[:, None] < sizes[:, 0, None, None]) & (columns < sizes[:, 1, None, None])
        if not images.is_floating_point():
            images = images.float()
            if augment is not None:
                images = augment(images)
            mean, std = (images.new_tensor(v).view(1, 3, 1, 1) * 255 for v in (MEAN, STD))
            images = (images - mean) / std * inside[:, None]
        return images, inside

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """The network alone: matching is the host's work, and would cut the graph."""
        self.net.compile(*args, **kwargs)


class TinyTask(ScoredTask):
    """A scored task that knows its largest batch."""

    train_set: TrainImages

    def heaviest(self, batch_size: int) -> list[Draw]:
        """What takes the most memory: the longest images at the largest scale. For the batch-size search."""
        images, s = self.train_set, self.train_set.s
        sizes = [fitted(size, s.size_high, s.longest) for size in images.coco.sizes]
        order = sorted(range(len(sizes)), key=lambda row: sizes[row][0] * sizes[row][1], reverse=True)
        seed = max(range(256), key=lambda seed: images.short(Draw(0, seed)))
        return [Draw(order[number % len(order)], seed) for number in range(batch_size)]


class TinyDetrWorkload:
    """The workload of this name."""

    name = "tiny_detr"
    summary = "detection of tiny objects on COCO json: DETR with a smaller stride, Hungarian matching, AP and AP_small"
    presets = PRESETS
    aliases = ALIASES
    translated = staticmethod(translated)

    def build(self, settings: TinySettings, context: Context) -> TinyTask:
        s = settings
        data = context.data_or_made(make_data)
        # all that will be due, now: what is wrong with it would end the training later
        names = [s.train_json, s.eval_json, *([s.heavy_json] if s.heavy_every_epochs > 0 else [])]
        listed = [read_coco(data / name, data / s.image_folder) for name in names]
        train, *tests = _usable(listed, context)
        for test in tests:
            _compare(train, test)
        crowded = sum((~objects.crowd).sum() > s.queries for objects in train.objects)
        if crowded:
            context.say(f"{crowded} of {len(train.paths)} images show more objects than queries={s.queries} can name.")
        net = TinyDetr(s, len(train.categories))
        shapes = [padded([fitted(size, s.size, s.longest)]) for size in train.sizes]

        @cache
        def scorer(heavy: bool) -> Scorer:
            if heavy and len(tests) == 1:  # with those of before, so that quarantine.txt stays complete
                *_, late = _usable([*listed, read_coco(data / s.heavy_json, data / s.image_folder)], context)
                _compare(train, late)
                tests.append(late)
            found = tests[heavy]
            images = EvalImages(found, _reader(found, s, context, "heavy" if heavy else "eval"), s)
            padder = Padder(_worst(found, s.size, s))
            return Scorer(net, TinyObjective.prepare, images, padder, context.device, context.ranks, s)

        return TinyTask(
            objective=TinyObjective(
                net,
                SetLoss(s, len(train.categories)),
                BatchAugment(s.clahe, s.motion_blur) if s.augment == "batch" else None,
            ),
            train_set=TrainImages(train, _reader(train, s, context, "train"), s),
            order=ShapeBuckets(shapes, s.seed) if s.padding == "bucket" else Shuffled(len(shapes), s.seed),
            stages=net.stages,
            collate=Padder(_worst(train, s.size_high if s.multi_scale else s.size, s)),
            scorer=scorer,
        )


def _usable(sets: list[CocoSet], context: Context) -> list[CocoSet]:
    """All images are there and their boxes possible; or, with quarantine, those whose are."""
    if not context.quarantine:
        for coco in sets:
            coco.check()
        return sets
    known = {path: (coco, row) for coco in sets for row, path in enumerate(coco.paths)}

    def read(path: Path) -> None:
        coco, row = known[path]
        FromFiles(coco.paths, coco.sizes)(row)
        if fault := coco.fault(row):
            raise DataError(path, fault)

    bad = quarantined(known, read, context)
    return [coco.without(bad) for coco in sets]


def _compare(train: CocoSet, other: CocoSet) -> None:
    """Raise DataError where a model that learned from the one cannot be judged by the other."""
    if train.categories != other.categories:
        raise DataError(other.file, f"has the categories {other.categories}, and {train.file} {train.categories}.")
    if all(objects.crowd.all() for objects in other.objects):
        raise DataError(other.file, "has no objects to evaluate.", "Its annotations are crowds, or there are none.")


def _worst(coco: CocoSet, short: int, s: TinySettings) -> tuple[int, int] | None:
    """What every batch is padded to; None where each has its own size."""
    return padded([fitted(size, short, s.longest) for size in coco.sizes]) if s.padding == "worst" else None


def _reader(coco: CocoSet, s: TinySettings, context: Context, name: str) -> Callable[[int], Pixels]:
    if s.decode == "each_time":
        return FromFiles(coco.paths, coco.sizes)
    most = (max(s.size, s.size_high), s.longest)
    read = FromFiles(coco.paths, coco.sizes, most)
    return flat_bank(context.out / f"{name}.bank", coco.paths, read, np.uint8, context.ranks, most)


WORKLOAD = TinyDetrWorkload()
