"""From frames to one vector per recording, by attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["AttentiveStatistics", "SelfAttentive"]


class SelfAttentive(nn.Module):
    """SAP: frames (batch, channels, time) weighted by their likeness to a learned context (Cai et al. 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.project = nn.Linear(channels, channels)
        self.context = nn.Parameter(torch.empty(channels, 1))
        nn.init.xavier_normal_(self.context)
        self.outputs = channels

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.project(x.transpose(1, 2)))
        weight = (hidden @ self.context).softmax(dim=1)
        return (x.transpose(1, 2) * weight).sum(dim=1)


class AttentiveStatistics(nn.Module):
    """ASP: weighted mean and standard deviation of each channel over time (Okabe et al. 2018). (batch, 2 channels)."""

    def __init__(self, channels: int, hidden: int = 128) -> None:
        super().__init__()
        self.attention = nn.Sequential(
            nn.Conv1d(channels, hidden, 1), nn.ReLU(), nn.BatchNorm1d(hidden), nn.Conv1d(hidden, channels, 1)
        )
        self.outputs = 2 * channels

    def forward(self, x: Tensor) -> Tensor:
        weight = self.attention(x).float().softmax(dim=2)
        x = x.float()  # the square of the mean is subtracted from the mean of squares: bf16 would leave nothing
        mean = (x * weight).sum(dim=2)
        variance = (x.square() * weight).sum(dim=2) - mean.square()
        return torch.cat([mean, variance.clamp(min=1e-5).sqrt()], dim=1)
