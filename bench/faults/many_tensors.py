"""Additive model: one small network per feature, as in neural additive models."""

import argparse

import torch
from torch import nn


class Additive(nn.Module):
    def __init__(self, features=64, groups=12):
        super().__init__()
        self.scales = nn.ParameterList(nn.Parameter(torch.randn(16)) for _ in range(features * groups))
        self.first = nn.Linear(features, 256)
        self.last = nn.Linear(256, 1)

    def forward(self, x):
        shape = torch.stack(tuple(self.scales)).mean(0).repeat(16)
        return self.last(torch.relu(self.first(x)) * (1 + 0.1 * shape)).squeeze(-1)


def dataset(rows=8000, features=64):
    generator = torch.Generator().manual_seed(59)
    x = torch.randn(rows, features, generator=generator)
    return x, torch.sin(x[:, :8]).sum(1) + 0.1 * torch.randn(rows, generator=generator)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(0)
    x, y = dataset()
    model = Additive()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, foreach=False)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(x), (args.batch_size,))
        loss = nn.functional.mse_loss(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
