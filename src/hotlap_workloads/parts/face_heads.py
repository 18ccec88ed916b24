"""Heads of face recognition: ArcFace, CosFace and AdaFace, with trained centres or with centres moved by a teacher.

Centres are (classes, dim). All return cosines times the scale with the margin applied to the sample's own class,
(batch, classes), to be given to cross-entropy.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F

from hotlap_workloads.engine.ranks import together
from hotlap_workloads.parts.margin_heads import additive_angular, additive_cosine

__all__ = ["FaceHead", "Kind", "MovedCentres", "adaptive_margin", "adaptive_weight"]

Kind = Literal["arcface", "cosface", "adaface"]


def adaptive_weight(student: Tensor, teacher: Tensor, centres: Tensor) -> Tensor:
    """How much of its old place a centre keeps: clamp(cos(student, teacher) cos(centre, teacher), 1e-6, 1), (batch,).

    AdaDistill (Boutros et al., ECCV 2024): a student that still differs from its teacher, or a centre that is far from
    the teacher's embedding, lets the centre move most of the way. Rows belong together. (The authors' code also raises
    a negative second cosine to 1e-6, which tells apart only when both are negative.)
    """
    follows = F.cosine_similarity(student, teacher)
    near = F.cosine_similarity(centres, teacher)
    return (follows * near).clamp(1e-6, 1)


def adaptive_margin(cosine: Tensor, quality: Tensor, margin: float) -> Tensor:
    """cos(theta - m q) - (m q + m): AdaFace (Kim et al. 2022), q in -1 to 1 from the length of the embedding.

    Sharp images (q = 1) get an additive margin of 2 m with the angle let off by m, blurred ones (q = -1) an angular m.
    """
    theta = torch.acos(cosine.clamp(-1 + 1e-3, 1 - 1e-3))  # the slope of acos at its ends is no number
    theta = (theta - margin * quality).clamp(1e-3, math.pi - 1e-3)
    return torch.cos(theta) - margin * quality - margin


class FaceHead(nn.Module):
    """One of the three margins over trained centres. ``concentration`` is AdaFace's h."""

    norm_mean: Tensor
    norm_deviation: Tensor

    def __init__(
        self, kind: Kind, dim: int, classes: int, scale: float, margin: float, concentration: float = 0.333
    ) -> None:
        super().__init__()
        self.kind, self.scale, self.margin, self.concentration = kind, scale, margin, concentration
        self.momentum = 0.01  # the running means' share (Kim et al. 2022)
        self.centres = nn.Parameter(torch.empty(classes, dim))
        nn.init.normal_(self.centres, std=0.01)
        if kind == "adaface":
            self.register_buffer("norm_mean", torch.tensor(20.0))
            self.register_buffer("norm_deviation", torch.tensor(100.0))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """In fp32: the margin is a matter of the third digit."""
        with torch.autocast(embeddings.device.type, enabled=False):
            embeddings, own_column = embeddings.float(), labels[:, None]
            cosine = F.linear(F.normalize(embeddings), F.normalize(self.centres)).clamp(-1, 1)
            own = self._own(cosine.gather(1, own_column), embeddings)
            return self.scale * cosine.scatter(1, own_column, own)

    def _own(self, own: Tensor, embeddings: Tensor) -> Tensor:
        """The cosine with the own class, (batch, 1), with its margin. No table of all classes is needed for that."""
        first = torch.zeros(len(own), dtype=torch.long, device=own.device)
        if self.kind == "arcface":
            return additive_angular(own, first, self.margin)
        if self.kind == "cosface":
            return additive_cosine(own, first, self.margin)
        return adaptive_margin(own, self._quality(embeddings), self.margin)

    @torch.no_grad()
    def _quality(self, embeddings: Tensor) -> Tensor:
        """Length of each embedding against the running mean and deviation of lengths, times h, in -1 to 1."""
        norms = embeddings.norm(dim=1, keepdim=True).clamp(0.001, 100)
        if self.training:
            self.norm_mean.lerp_(norms.mean(), self.momentum)
            self.norm_deviation.lerp_(norms.std() if len(norms) > 1 else self.norm_deviation, self.momentum)
        quality: Tensor = (norms - self.norm_mean) / (self.norm_deviation + 1e-3) * self.concentration
        return quality.clamp(-1, 1)


class MovedCentres(FaceHead):
    """The margin over centres that are not trained: each step moves those of its classes towards the teacher.

    All ranks move by the embeddings of all ranks, so that their centres stay the same. A class with several samples in
    the step moves to the mean of what each of them asks for. The centres are a parameter without gradient: kept in
    checkpoints, and not sent from rank to rank at every step as buffers are.
    """

    def __init__(
        self, kind: Kind, dim: int, classes: int, scale: float, margin: float, concentration: float = 0.333
    ) -> None:
        super().__init__(kind, dim, classes, scale, margin, concentration)
        self.centres.requires_grad = False

    @torch.no_grad()
    def move(self, student: Tensor, teacher: Tensor, labels: Tensor) -> Tensor:
        """Move the centres; returns this rank's weights, (batch,). Embeddings need no length of 1."""
        with torch.autocast(student.device.type, enabled=False):
            mine = len(labels)
            student, teacher, labels = _of_all_ranks(F.normalize(student.float()), F.normalize(teacher.float()), labels)
            before = self.centres[labels]
            weight = adaptive_weight(student, teacher, before)
            wanted = weight[:, None] * before + (1 - weight[:, None]) * teacher
            wanted = torch.where(wanted.isfinite().all(dim=1, keepdim=True), wanted, before)
            same = (labels[:, None] == labels).double()  # doubles: TF32 would round the centres
            mean = same @ wanted.double() / same.sum(dim=1, keepdim=True)
            self.centres[labels] = mean.float()
            first = dist.get_rank() * mine if together() else 0
            return weight[first : first + mine]


def _of_all_ranks(*mine: Tensor) -> list[Tensor]:
    """Each tensor with those of the other ranks behind it, in the order of the ranks."""
    if not together():
        return list(mine)
    out = []
    for tensor in mine:
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, tensor.contiguous())
        out.append(torch.cat(parts))
    return out
