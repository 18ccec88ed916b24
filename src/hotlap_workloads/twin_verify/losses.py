"""The losses of a branch, and of the branches together."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hotlap_workloads.twin_verify.settings import TwinSettings

__all__ = ["BranchLoss", "Branches", "focal_loss", "triplet_loss"]


def focal_loss(logits: Tensor, same: Tensor, alpha: float, gamma: float) -> Tensor:
    """-a (1 - p)^gamma log p, p the probability given to the right answer (Lin et al. 2017)."""
    bce = F.binary_cross_entropy_with_logits(logits, same, reduction="none")
    right = torch.sigmoid(torch.where(same > 0.5, logits, -logits))
    weight = torch.where(same > 0.5, alpha, 1 - alpha)
    return (weight * (1 - right) ** gamma * bce).mean()


def triplet_loss(features: Tensor, person: Tensor, number: Tensor, margin: float) -> Tensor:
    """Mean over the anchors of max(0, farthest same - nearest other + margin) (Hermans et al. 2017, batch hard).

    Distances are between unit vectors, 0 to 2. ``number`` says which image it is: an image is no positive of itself.
    Anchors without another image of theirs, or without anybody else, do not count; where none counts, the loss is 0.
    """
    unit = F.normalize(features, dim=1)
    distance = (2 - 2 * unit @ unit.T).clamp(min=1e-6).sqrt()  # the slope of sqrt at 0 is no number
    alike = person[:, None] == person[None]
    positive = alike & (number[:, None] != number[None])
    farthest = distance.masked_fill(~positive, -torch.inf).max(dim=1).values
    nearest = distance.masked_fill(alike, torch.inf).min(dim=1).values
    counts = positive.any(dim=1) & ~alike.all(dim=1)
    gaps = torch.where(counts, farthest - nearest, -margin - 1.0)  # no infinities where the mean has weight 0
    return F.relu(gaps + margin).sum() / counts.sum().clamp(min=1)


class BranchLoss(nn.Module):
    """b BCE + t triplet + f focal of one branch, in fp32; also the parts."""

    def __init__(self, s: TwinSettings) -> None:
        super().__init__()
        self.weights = {"bce": s.bce, "triplet": s.triplet, "focal": s.focal}
        self.margin, self.alpha, self.gamma = s.margin, s.focal_alpha, s.focal_gamma

    def forward(self, logits: Tensor, features: tuple[Tensor, Tensor], batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """``features`` are those of the left and of the right images."""
        same = batch["same"]
        with torch.autocast(logits.device.type, enabled=False):
            said = {}
            if self.weights["bce"]:
                said["bce"] = F.binary_cross_entropy_with_logits(logits, same)
            if self.weights["triplet"]:
                both = torch.cat([part.float() for part in features])
                person, number = batch["person"].T.flatten(), batch["number"].T.flatten()
                said["triplet"] = triplet_loss(both, person, number, self.margin)
            if self.weights["focal"]:
                said["focal"] = focal_loss(logits, same, self.alpha, self.gamma)
            said["loss"] = torch.stack([self.weights[name] * value for name, value in said.items()]).sum()
        return said


class Branches(nn.Module):
    """The branches' losses added: with fixed weights, or as 1/2 sum (exp(-w) L + w), w learned from 0.

    ``losses`` are those of SA, GLCA and, where there is one, PWCA.
    """

    def __init__(self, s: TwinSettings) -> None:
        super().__init__()
        self.weights = [s.sa_weight, s.glca_weight, s.pwca_weight][: 3 if s.pwca_blocks else 2]
        self.log_weights = nn.Parameter(torch.zeros(len(self.weights))) if s.weighting == "uncertainty" else None

    def forward(self, losses: list[Tensor]) -> Tensor:
        if self.log_weights is None:
            return torch.stack([w * loss for w, loss in zip(self.weights, losses, strict=True)]).sum()
        return 0.5 * (torch.exp(-self.log_weights) * torch.stack(losses) + self.log_weights).sum()
