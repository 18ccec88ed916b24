"""Digit-like images with random rotation and zoom."""

import argparse

import numpy as np
import torch
from scipy import ndimage
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Glyphs(Dataset):
    def __init__(self, count=2000, size=64):
        rng = np.random.default_rng(5)
        self.labels = rng.integers(0, 8, count)
        yy, xx = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
        radius, angle = np.hypot(xx, yy), np.arctan2(yy, xx)
        shapes = [np.exp(-((radius - 0.4 - 0.2 * np.cos((k + 1) * angle)) ** 2) * 60) for k in range(8)]
        self.images = np.stack([shapes[k] for k in self.labels]).astype(np.float32)
        self.images += 0.1 * rng.standard_normal(self.images.shape).astype(np.float32)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = ndimage.rotate(self.images[index], np.random.uniform(-25, 25), reshape=False, order=3)
        image = np.roll(image, np.random.randint(-4, 5), axis=1)
        return torch.from_numpy(image[None]), self.labels[index]


def block(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, 2, 1), nn.BatchNorm2d(outside), nn.ReLU(inplace=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=24)
    args = parser.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    dataset = Glyphs()
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = nn.Sequential(block(1, 12), block(12, 24), block(24, 48), nn.Flatten(), nn.Linear(48 * 64, 8))
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    step, losses = 0, []
    while True:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            step += 1
            print(f"\r{step}/{args.steps}", end="")
            if step == 1 or step % 20 == 0:
                print(f"\nstep {step} loss {np.mean(losses[-10:]):.4f}", flush=True)
            if step >= args.steps:
                return


if __name__ == "__main__":
    main()
