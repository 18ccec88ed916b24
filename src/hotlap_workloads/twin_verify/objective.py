"""A batch of pairs to its loss, the branches computed image by image or jointly: the same formulas."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hotlap_workloads.twin_verify.augment import apply_looks, normalised
from hotlap_workloads.twin_verify.losses import Branches, BranchLoss
from hotlap_workloads.twin_verify.model import DCAL, PairHead
from hotlap_workloads.twin_verify.settings import TwinSettings

__all__ = ["TwinObjective"]

Pair = tuple[Tensor, Tensor]


class TwinObjective(nn.Module):
    """The network, a head for each of SA and GLCA (PWCA has that of SA), and the losses.

    A pair's score is the head over [SA, GLCA]: the sum of both heads' logits.
    """

    def __init__(self, s: TwinSettings) -> None:
        super().__init__()
        self.net = DCAL(s)
        self.head, self.head_glca = PairHead(s.width), PairHead(s.width)
        self.branch, self.branches = BranchLoss(s), Branches(s)
        self.has_pwca = s.pwca_blocks > 0

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        sa, glca, pwca = self._joint(batch) if "images" in batch else self._each(batch)
        logits = [self.head(*sa), self.head_glca(*glca)]
        features = [sa, glca]
        if pwca is not None:
            logits.append(self.head(*pwca))
            features.append(pwca)
        said = [self.branch(logit, feature, batch) for logit, feature in zip(logits, features, strict=True)]
        right = ((logits[0] + logits[1] > 0) == (batch["same"] > 0.5)).float().mean()
        parts = {name: value for name, value in said[0].items() if name != "loss"}
        return {"loss": self.branches([one["loss"] for one in said]), "accuracy": right, **parts}

    def scores(self, left: Tensor, right: Tensor) -> Tensor:
        """Of pairs, from what :meth:`embed` gave."""
        (sa_left, glca_left), (sa_right, glca_right) = left.unbind(1), right.unbind(1)
        score: Tensor = self.head(sa_left, sa_right) + self.head_glca(glca_left, glca_right)
        return score

    def embed(self, images: Tensor) -> Tensor:
        """Normalised images to (images, 2, width): SA and GLCA, in fp32."""
        return torch.stack(self.net(images), dim=1).float()

    def _each(self, batch: dict[str, Tensor]) -> tuple[Pair, Pair, Pair | None]:
        (sa_left, glca_left), (sa_right, glca_right) = (self.net(batch[side]) for side in ("left", "right"))
        return (sa_left, sa_right), (glca_left, glca_right), self.pwca_each(batch["left"], batch["right"])

    def pwca_each(self, left: Tensor, right: Tensor) -> Pair | None:
        """PWCA of normalised images."""
        return self.net.pwca_each(self.net.tokens(left), self.net.tokens(right)) if self.has_pwca else None

    def _joint(self, batch: dict[str, Tensor]) -> tuple[Pair, Pair, Pair | None]:
        tokens = self.net.tokens(apply_looks(normalised(batch["images"]), batch["looks"]))
        left, right = batch["left"], batch["right"]
        sa, glca = self.net.features(tokens)
        pwca = self.net.pwca_joint(tokens[left], tokens[right]) if self.has_pwca else None
        return (sa[left], sa[right]), (glca[left], glca[right]), pwca
