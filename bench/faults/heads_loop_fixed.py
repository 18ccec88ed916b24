"""Set transformer whose heads look at neighbourhoods of different size."""

import argparse

import torch
from torch import nn


class LocalHeads(nn.Module):
    def __init__(self, width=32, count=48):
        super().__init__()
        self.count = count
        self.query = nn.Parameter(torch.randn(count, width, 8) / width**0.5)
        self.value = nn.Parameter(torch.randn(count, width, 8) / width**0.5)
        self.out = nn.Linear(count * 8, width)

    def forward(self, x):
        q = torch.einsum("bnw,kwd->bknd", x, self.query)
        v = torch.einsum("bnw,kwd->bknd", x, self.value)
        weights = (q @ q.transpose(2, 3) / 2.8).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class SetModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 32)
        self.heads = LocalHeads()
        self.norm = nn.LayerNorm(32)
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        x = self.embed(x)
        return self.head(self.norm(x + self.heads(x)).amax(1)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = SetModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    points = torch.randn(2048, 16, 4)
    target = points.norm(dim=-1).amax(1)
    history = []
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(points), (16,))
        loss = nn.functional.smooth_l1_loss(model(points[pick]), target[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {sum(history[-20:]) / len(history[-20:]):.4f}", flush=True)


if __name__ == "__main__":
    main()
