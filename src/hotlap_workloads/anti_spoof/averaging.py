"""Stochastic weight averaging: the mean of the weights at every evaluation that was the best so far.

Izmailov et al. 2018 (arXiv:1803.05407), with the choice of moments of AASIST (Jung et al. 2022, arXiv:2110.01200).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["WeightMean"]


class WeightMean(nn.Module):
    """The mean, kept in fp64 on the CPU.

    It is no buffer, which several ranks would send to each other at every step, but state of its own: it stands in the
    checkpoint as one tensor.
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.count, self.best = 0, 1.0
        self.mean = torch.zeros(sum(p.numel() for p in net.parameters()), dtype=torch.float64)

    def get_extra_state(self) -> Tensor:
        return torch.cat([torch.tensor([float(self.count), self.best], dtype=torch.float64), self.mean])

    def set_extra_state(self, state: Tensor) -> None:
        self.count, self.best = int(state[0]), float(state[1])
        self.mean = state[2:].to("cpu", torch.float64, copy=True)

    def look(self, net: nn.Module, eer: float) -> bool:
        """Take the weights in, if no EER was lower so far. Says whether none was."""
        if eer > self.best:
            return False
        now = torch.cat([p.detach().reshape(-1).to("cpu", torch.float64) for p in net.parameters()])
        self.count, self.best = self.count + 1, eer
        self.mean = self.mean + (now - self.mean) / self.count
        return True

    @contextmanager
    def used_by(self, net: nn.Module, batches: Iterable[Tensor]) -> Iterator[None]:
        """The network has the mean weights, and norms that have seen ``batches`` with them; then its own again."""
        own = {name: value.clone() for name, value in net.state_dict().items()}
        norms = [module for module in net.modules() if isinstance(module, _BatchNorm)]
        momentum = [norm.momentum for norm in norms]
        try:
            at = 0
            for parameter in net.parameters():
                parameter.copy_(self.mean[at : at + parameter.numel()].view(parameter.shape))
                at += parameter.numel()
            for norm in norms:
                norm.reset_running_stats()
                norm.momentum = None  # the mean over all batches
                norm.train()
            for batch in batches:
                net(batch)
            net.eval()
            yield
        finally:
            net.load_state_dict(own)
            for norm, value in zip(norms, momentum, strict=True):
                norm.momentum = value
            net.eval()
