"""Segmentation of synthetic cells; the confusion matrix is kept up to date while training."""

import argparse

import torch
from torch import nn

CLASSES, SIZE = 4, 40


def cells(count=512):
    generator = torch.Generator().manual_seed(79)
    low = torch.randn(count, CLASSES, 5, 5, generator=generator)
    masks = nn.functional.interpolate(low, size=SIZE, mode="bilinear").argmax(1)
    shades = torch.tensor([0.0, 0.4, 0.7, 1.0])[masks].unsqueeze(1)
    return shades + 0.15 * torch.randn(count, 1, SIZE, SIZE, generator=generator), masks


class ConfusionMatrix:
    def __init__(self, classes):
        self.classes = classes
        self.counts = [[0] * classes for _ in range(classes)]

    def update(self, predicted, truth):
        for p, t in zip(predicted.flatten().tolist(), truth.flatten().tolist(), strict=True):
            self.counts[t][p] += 1

    def mean_iou(self):
        scores = []
        for k in range(self.classes):
            union = sum(self.counts[k]) + sum(row[k] for row in self.counts) - self.counts[k][k]
            scores.append(self.counts[k][k] / max(1, union))
        return sum(scores) / self.classes


def unet():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, 1, 1), nn.BatchNorm2d(16),
        nn.ReLU(), nn.Conv2d(16, CLASSES, 1),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(0)
    images, masks = cells()
    model, confusion = unet(), ConfusionMatrix(CLASSES)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(images), (16,))
        logits = model(images[pick])
        loss = nn.functional.cross_entropy(logits, masks[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        confusion.update(logits.argmax(1), masks[pick])
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} mIoU {confusion.mean_iou():.3f}", flush=True)


if __name__ == "__main__":
    main()
