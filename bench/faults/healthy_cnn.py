"""Convolutional classifier in channels-last bf16 with sparse validation and checkpoints."""

import argparse
from pathlib import Path

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128), nn.ReLU(),
            nn.Conv2d(128, 128, 3, 1, 1), nn.BatchNorm2d(128), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


@torch.inference_mode()
def accuracy(model, images, labels):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in zip(images.split(64), labels.split(64), strict=True))
    model.train()
    return right / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("model.pt"))
    args = parser.parse_args()
    torch.manual_seed(0)
    labels = torch.randint(0, 10, (1024,))
    centres = nn.functional.interpolate(torch.randn(10, 3, 8, 8), size=32)
    images = (centres[labels] + torch.randn(1024, 3, 32, 32)).contiguous(memory_format=torch.channels_last)
    model = Net().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=True)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, 896, (32,))
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(images[pick])
        loss = nn.functional.cross_entropy(logits.float(), labels[pick])
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 200 == 0:
            print(f"step {step} accuracy {accuracy(model, images[896:], labels[896:]):.3f}", flush=True)
            torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
