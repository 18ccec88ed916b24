"""Sequence regression with an LSTM written out."""

import argparse

import torch
from torch import nn


class GatedMemory(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.wx = nn.Linear(inputs, 4 * hidden)
        self.wh = nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], self.hidden)
        outputs = []
        for t in range(x.shape[1]):
            gates = self.wx(x[:, t]) + self.wh(h)
            i, f, g, o = gates.chunk(4, dim=-1)
            c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs, 1)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = GatedMemory(8, 48)
        self.head = nn.Linear(48, 1)

    def forward(self, x):
        return self.head(self.rnn(x)).squeeze(-1)


def batch(size, generator):
    x = torch.randn(size, 64, 8, generator=generator)
    return x, 0.3 * x[..., :3].sum(-1).cumsum(1) / torch.arange(1, 65) ** 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(1, args.steps + 1):
        x, y = batch(16, generator)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
