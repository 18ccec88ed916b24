"""The training put together: data, order, student, teacher, head, evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotlap_workloads.engine.loader import as_batch
from hotlap_workloads.engine.order import Order, Shuffled
from hotlap_workloads.engine.task import Context, TrainSet
from hotlap_workloads.face_distill.data import DecodedFaces, PackedFaces, as_input
from hotlap_workloads.face_distill.embedder import Embedder
from hotlap_workloads.face_distill.evaluations import Evaluation
from hotlap_workloads.face_distill.found_sets import (
    HEAVY_NAMES,
    heavy_names,
    heavy_sets,
    train_squares,
    verification_sets,
)
from hotlap_workloads.face_distill.made_data import make_data
from hotlap_workloads.face_distill.presets import ALIASES, PRESETS, for_made_data, translated
from hotlap_workloads.face_distill.settings import LEAST_PHOTOS, FaceSettings
from hotlap_workloads.face_distill.squares import Squares, packed, unreadable
from hotlap_workloads.face_distill.teacher import Teacher, make_teacher
from hotlap_workloads.face_distill.teacher_bank import TeacherBank, build_bank
from hotlap_workloads.parts.face_heads import FaceHead, MovedCentres
from hotlap_workloads.parts.iresnet import IResNet
from hotlap_workloads.parts.mobile_face_net import MobileFaceNet

__all__ = ["WORKLOAD", "FaceObjective", "FaceTask"]


class FaceObjective(nn.Module):
    """A batch to its loss; the teacher, or what it said before, moves the centres first."""

    def __init__(self, net: nn.Module, head: FaceHead, teacher: Teacher | None) -> None:
        super().__init__()
        self.net, self.head = net, head
        self.teacher = teacher  # no module: see there

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        images, labels = as_input(batch["image"], batch.get("flip")), batch["label"]
        embeddings = self.net(images).float()
        said = {}
        if isinstance(self.head, MovedCentres):
            said["centre_weight"] = self.head.move(embeddings.detach(), self._taught(batch, images), labels).mean()
        logits = self.head(embeddings, labels)
        said["loss"] = F.cross_entropy(logits, labels)
        said["accuracy"] = (logits.detach().argmax(dim=1) == labels).float().mean()
        return said

    def _taught(self, batch: dict[str, Tensor], images: Tensor) -> Tensor:
        if "teacher" in batch:
            return batch["teacher"].float()
        assert self.teacher is not None
        return self.teacher(images)


@dataclass
class FaceTask:
    """What the engine trains. ``sets(heavy)`` are the evaluations."""

    objective: nn.Module
    train_set: TrainSet
    order: Order
    stages: Sequence[nn.Module]
    collate: Callable[[list[Any]], Any] | None
    embedder: Embedder
    sets: Callable[[bool], list[Evaluation]]
    has_heavy: bool

    def evaluate(self, heavy: bool) -> dict[str, float]:
        measured: dict[str, float] = {}
        for one in self.sets(heavy):
            measured |= one.measure(self.embedder)
        accuracies = [value for name, value in measured.items() if name.endswith("_accuracy")]
        if accuracies and not heavy:
            measured["accuracy"] = float(np.mean(accuracies))
        return measured


class FaceDistill:
    """The workload of this name."""

    name = "face_distill"
    summary = "face recognition distilled from a teacher (AdaDistill): IResNets, MobileFaceNet, ten-fold accuracy, TAR"
    presets = PRESETS
    aliases = ALIASES
    for_made_data = staticmethod(for_made_data)
    translated = staticmethod(translated)

    def build(self, settings: FaceSettings, context: Context) -> FaceTask:
        s = settings
        data = context.data_or_made(make_data)
        if context.data is None:
            crops = f"{s.batch_size} crops of {s.size}x{s.size}"
            context.say(f"No --data: training on {data}, made here, in batches of {crops}.")
        squares = train_squares(s, data, forgive=context.quarantine)
        light = verification_sets(s, data, not context.quarantine)
        wanted, there = s.heavy_every_epochs > 0 or bool(s.heavy), bool(heavy_names(s, data))
        if wanted and not there:
            context.say(f"{data} holds nothing for the heavy evaluation ({HEAVY_NAMES}): training does without.")
        heavy = heavy_sets(s, data, not context.quarantine) if wanted and there else None
        listed = [squares, *(one.squares for one in [*light, *(heavy or [])])]
        if context.quarantine:
            bad = unreadable(listed, context)
            squares = squares.only(squares.kept_rows(bad))
            light = [one.without(bad) for one in light]
            heavy = None if heavy is None else [one.without(bad) for one in heavy]
        teacher = make_teacher(s, squares, context) if s.adaptive else None
        net = _student(s)
        head = (MovedCentres if s.adaptive else FaceHead)(
            s.kind, s.embedding, squares.photos.identities, s.scale, s.margin_used, s.concentration
        )

        @cache
        def sets(is_heavy: bool) -> list[Evaluation]:
            if not is_heavy:
                return light
            if heavy is not None:
                return heavy
            found = heavy_sets(s, data, not context.quarantine)
            if not context.quarantine:
                return found
            bad = unreadable([*listed, *(one.squares for one in found)], context)  # quarantine.txt stays complete
            return [one.without(bad) for one in found]

        return FaceTask(
            objective=FaceObjective(net, head, teacher),
            train_set=_train_set(s, squares, teacher, context),
            order=Shuffled(len(squares), s.seed, least=LEAST_PHOTOS),
            stages=list(net.stages),
            collate=as_batch if s.decode == "once" else None,
            embedder=Embedder(net, context, s.eval_batch_size, s.eval_workers, s.decode == "once"),
            sets=sets,
            has_heavy=there,
        )


def _student(s: FaceSettings) -> MobileFaceNet | IResNet:
    if s.student == "mobilefacenet":
        return MobileFaceNet(s.embedding, s.size, s.student_width)
    return IResNet(s.student, s.embedding, s.size, s.student_width)


def _train_set(s: FaceSettings, squares: Squares, teacher: Teacher | None, context: Context) -> TrainSet:
    if s.decode == "each_time":
        return DecodedFaces(squares, s.flip_on == "loader")
    folder = packed(squares, context.out / "train.pack", context)
    bank = None
    if teacher is not None and s.teacher_outputs == "once":
        bank = _bank(s, squares, teacher, PackedFaces(folder), context)
    return PackedFaces(folder, bank)


def _bank(s: FaceSettings, squares: Squares, teacher: Teacher, faces: PackedFaces, context: Context) -> TeacherBank:
    def ask(rows: list[int]) -> tuple[Tensor, Tensor]:
        images = as_input(faces.images(rows).to(context.device))
        return teacher(images), teacher(images.flip(3))

    fingerprint = f"{squares.fingerprint()} {teacher.fingerprint}"
    shape = (len(squares), s.embedding)
    with torch.no_grad():
        return build_bank(context.out / "teacher.bank", fingerprint, shape, ask, context, s.eval_batch_size)


WORKLOAD = FaceDistill()
