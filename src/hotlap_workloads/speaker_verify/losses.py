"""The six losses. Embeddings are (batch, dim); ``group`` utterances of a speaker stand one behind the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotlap_workloads.parts.margin_heads import AAMSoftmax, AMSoftmax
from hotlap_workloads.speaker_verify.settings import SpeakerSettings

__all__ = ["GE2E", "AngularPrototypical", "Classified", "Triplet", "make_loss"]

Said = dict[str, Tensor]


class Classified(nn.Module):
    """Cross-entropy over what ``head`` says, with the share of right answers."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, embeddings: Tensor, labels: Tensor) -> Said:
        plain = isinstance(self.head, nn.Linear)
        logits = (self.head(embeddings) if plain else self.head(embeddings, labels)).float()
        return {"loss": F.cross_entropy(logits, labels), "accuracy": _accuracy(logits, labels)}


class _Similarity(nn.Module):
    """w cos + b with learned w > 0 and b, from 10 and -5 (Wan et al. 2018)."""

    def __init__(self, group: int) -> None:
        super().__init__()
        self.group = group
        self.w = nn.Parameter(torch.tensor(10.0))
        self.b = nn.Parameter(torch.tensor(-5.0))

    def grouped(self, embeddings: Tensor) -> Tensor:
        """(speakers, group, dim) in fp32."""
        return embeddings.float().view(-1, self.group, embeddings.shape[1])

    def scaled(self, cosine: Tensor) -> Tensor:
        return self.w.clamp(min=1e-6) * cosine + self.b


class AngularPrototypical(_Similarity):
    """The first utterance must be most like its own speaker's mean of the others (Chung et al. 2020).

    Rows are first utterances, columns the means of all speakers: the softmax runs over speakers, as published.
    """

    def forward(self, embeddings: Tensor, labels: Tensor) -> Said:
        x = self.grouped(embeddings)
        anchor, prototype = F.normalize(x[:, 0], dim=1), F.normalize(x[:, 1:].mean(dim=1), dim=1)
        logits = self.scaled(anchor @ prototype.T)
        own = torch.arange(len(x), device=x.device)
        return {"loss": F.cross_entropy(logits, own), "accuracy": _accuracy(logits, own)}


class GE2E(_Similarity):
    """Each utterance against every speaker's mean, its own without itself (Wan et al. 2018, softmax form)."""

    def forward(self, embeddings: Tensor, labels: Tensor) -> Said:
        x = self.grouped(embeddings)
        speakers, group, _ = x.shape
        sums = x.sum(dim=1)
        centres = F.normalize(sums / group, dim=1)
        without_itself = F.normalize((sums[:, None] - x) / (group - 1), dim=2)
        unit = F.normalize(x, dim=2)
        cosine = unit.flatten(0, 1) @ centres.T
        own = torch.arange(speakers, device=x.device).repeat_interleave(group)
        cosine = cosine.scatter(1, own[:, None], (unit * without_itself).sum(dim=2).flatten()[:, None])
        logits = self.scaled(cosine)
        return {"loss": F.cross_entropy(logits, own), "accuracy": _accuracy(logits, own)}


class Triplet(nn.Module):
    """Anchor and positive closer than anchor and the hardest other speaker of the batch, by a margin.

    Distances are squared, between unit vectors: 0 to 4 (Schroff et al. 2015).
    """

    def __init__(self, group: int, margin: float) -> None:
        super().__init__()
        self.group, self.margin = group, margin

    def forward(self, embeddings: Tensor, labels: Tensor) -> Said:
        x = F.normalize(embeddings.float().view(-1, self.group, embeddings.shape[1]), dim=2)
        anchor, positive = x[:, 0], x[:, 1]
        distance = 2 - 2 * anchor @ positive.T
        own = torch.eye(len(x), dtype=torch.bool, device=x.device)
        hardest = distance.masked_fill(own, torch.inf).min(dim=1).values
        near = distance.diagonal()
        right = (near < hardest).float().mean()
        return {"loss": F.relu(near - hardest + self.margin).mean(), "accuracy": right}


def make_loss(s: SpeakerSettings, speakers: int) -> nn.Module:
    """The loss by its name in the settings."""
    if s.loss == "angleproto":
        return AngularPrototypical(s.group)
    if s.loss == "ge2e":
        return GE2E(s.group)
    if s.loss == "triplet":
        return Triplet(s.group, s.margin)
    if s.loss == "softmax":
        return Classified(nn.Linear(s.embedding, speakers))
    head = AMSoftmax if s.loss == "amsoftmax" else AAMSoftmax
    return Classified(head(s.embedding, speakers, s.scale, s.margin))


def _accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits.argmax(dim=1) == labels).float().mean()
