"""Wide residual MLP for tabular data."""

import argparse

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Tabular(nn.Module):
    def __init__(self, features=96, width=512, depth=3):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x))).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(8192, 96)
    y = (x[:, :12] * x[:, 12:24]).sum(1) / 3
    model = Tabular()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)
    total = 0.0
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(x), (256,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            prediction = model(x[pick])
        loss = nn.functional.mse_loss(prediction.float(), y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        print(f"\rmean {total / step:.3f}", end="")
        if step == 1 or step % 20 == 0:
            print(f"\nstep {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
