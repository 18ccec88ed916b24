"""Classification losses on the sphere: the angle to the class of the sample must be smaller by a margin.

All take embeddings (batch, dim) and labels (batch,), and return the cosines times the scale with the margin applied
to the sample's own class, (batch, classes), to be given to cross-entropy.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["AAMSoftmax", "AMSoftmax", "additive_angular", "additive_cosine"]


def additive_cosine(cosine: Tensor, labels: Tensor, margin: float) -> Tensor:
    """cos(theta) - m at the sample's class (Wang et al. 2018, CosFace and AM-softmax)."""
    return cosine - margin * F.one_hot(labels, cosine.shape[1])


def additive_angular(cosine: Tensor, labels: Tensor, margin: float) -> Tensor:
    """cos(theta + m) at the sample's class (Deng et al. 2019, ArcFace).

    Beyond theta = pi - m the cosine would rise again: there, cos(theta) - m sin(m) keeps it falling, as in the authors'
    code.
    """
    sine = (1 - cosine.square()).clamp(min=1e-12).sqrt()  # the slope of sqrt at 0 is no number
    shifted = cosine * math.cos(margin) - sine * math.sin(margin)
    shifted = torch.where(cosine > math.cos(math.pi - margin), shifted, cosine - margin * math.sin(margin))
    return torch.where(F.one_hot(labels, cosine.shape[1]).bool(), shifted, cosine)


class _Margin(nn.Module):
    def __init__(self, dim: int, classes: int, scale: float, margin: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, dim))
        nn.init.xavier_normal_(self.weight)
        self.scale, self.margin = scale, margin

    def cosine(self, embeddings: Tensor) -> Tensor:
        """In fp32: a margin of 0.2 on a cosine with 8 bits of precision is coarse."""
        with torch.autocast(embeddings.device.type, enabled=False):
            return F.linear(F.normalize(embeddings.float()), F.normalize(self.weight.float()))


class AMSoftmax(_Margin):
    """Additive margin: s (cos(theta) - m)."""

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        return self.scale * additive_cosine(self.cosine(embeddings), labels, self.margin)


class AAMSoftmax(_Margin):
    """Additive angular margin: s cos(theta + m)."""

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        return self.scale * additive_angular(self.cosine(embeddings), labels, self.margin)
