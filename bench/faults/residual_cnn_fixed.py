"""A small residual network on 32x32 images."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, 2, 1)
        self.body = nn.Sequential(Residual(64), nn.Conv2d(64, 128, 3, 2, 1), Residual(128))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


class Loop:
    def __init__(self, steps):
        self.steps = steps
        generator = torch.Generator().manual_seed(73)
        self.labels = torch.randint(0, 10, (1024,), generator=generator)
        centres = F.interpolate(torch.randn(10, 3, 8, 8, generator=generator), size=32)
        self.images = centres[self.labels] + torch.randn(1024, 3, 32, 32, generator=generator)
        self.images = self.images.contiguous(memory_format=torch.channels_last)
        self.net = Net().to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9, foreach=True)

    def one(self):
        pick = torch.randint(0, 1024, (16,))
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = self.net(self.images[pick])
        loss = F.cross_entropy(logits.float(), self.labels[pick])
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self):
        for step in range(1, self.steps + 1):
            loss = self.one()
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    torch.manual_seed(0)
    Loop(parser.parse_args().steps).run()
