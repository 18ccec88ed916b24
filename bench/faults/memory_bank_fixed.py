"""Instance discrimination with a bank of past embeddings."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Contrast:
    def __init__(self, size=128):
        self.size = size
        self.bank = torch.zeros(0, size)

    def push(self, embeddings):
        self.bank = embeddings.detach()

    def negatives(self, count):
        return self.bank[-count:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(192, 256), nn.ReLU(), nn.Linear(256, 128))

    def forward(self, x):
        return F.normalize(self.body(x), dim=-1)


def views(x):
    return x + 0.3 * torch.randn_like(x), x + 0.3 * torch.randn_like(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    args = parser.parse_args()
    torch.manual_seed(0)
    images = torch.randn(4000, 192)
    net, contrast = Net(), Contrast()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(1, args.steps + 1):
        one, two = views(images[torch.randint(0, len(images), (256,))])
        a, b = net(one), net(two)
        near = (a * b).sum(-1, keepdim=True)
        far = torch.cat([a @ b.t() - 10 * torch.eye(len(a)), a @ contrast.negatives(256).t()], 1)
        loss = F.cross_entropy(torch.cat([near, far], 1) / 0.2, torch.zeros(len(a), dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        contrast.push(b)
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
