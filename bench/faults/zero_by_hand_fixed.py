"""Mixture of many small experts."""

import argparse

import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, features=16, experts=600):
        super().__init__()
        self.experts = nn.ParameterList(nn.Parameter(torch.randn(features) / 4) for _ in range(experts))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(())) for _ in range(experts))
        self.gate = nn.Linear(features, experts)

    def forward(self, x):
        weights, biases = torch.stack(tuple(self.experts)), torch.stack(tuple(self.biases))
        return ((x @ weights.t() + biases).tanh() * self.gate(x).softmax(-1)).sum(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(6000, 16)
    y = torch.tanh(x[:, 0] * 2) * torch.sign(x[:, 1])
    model = Experts()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, foreach=True)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(x), (64,))
        loss = nn.functional.mse_loss(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
