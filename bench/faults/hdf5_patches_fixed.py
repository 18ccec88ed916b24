"""Patches of tissue of five kinds, turned and mirrored at random. They lie compressed in one HDF5 file."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

KINDS = 5


def make_patches(path: Path, patches: int = 600, size: int = 96) -> Path:
    if path.exists():
        return path
    rng = np.random.default_rng(5)
    grid = np.mgrid[0:size, 0:size] / size
    with h5py.File(path, "w") as file:
        images = file.create_dataset(
            "images", (patches, size, size, 3), np.float32, chunks=(4, size, size, 3), compression="gzip"
        )
        file["kinds"] = np.arange(patches) % KINDS
        for number in range(patches):
            waves = np.sin((number % KINDS + 2) * 7 * (grid[0] + grid[1] * rng.uniform(0.5, 1.5)) + rng.uniform(0, 6))
            colour = rng.uniform(0.3, 1, 3)
            images[number] = np.round(waves[..., None] * colour + rng.normal(0, 0.2, (size, size, 1)), 2)
    return path


class Patches(Dataset):
    def __init__(self, path: Path) -> None:
        with h5py.File(path, "r") as file:
            self.kinds = file["kinds"][:]
            self.images = file["images"][:]

    def __len__(self) -> int:
        return len(self.kinds)

    def patch(self, index: int) -> np.ndarray:
        return self.images[index]

    def __getitem__(self, index: int):
        image = torch.from_numpy(self.patch(index)).permute(2, 0, 1)
        image = torch.rot90(image, random.randint(0, 3), (1, 2))
        if random.random() < 0.5:
            image = image.flip(2)
        return image.contiguous(), int(self.kinds[index])


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 5, 4, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 2, 1)
        )
        self.head = nn.Linear(32, KINDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.relu(self.layers(x)).mean((2, 3)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--patches", type=Path, default=Path("patches.h5"))
    args = parser.parse_args()
    torch.manual_seed(3)
    random.seed(3)
    loader = DataLoader(Patches(make_patches(args.patches)), 16, shuffle=True, drop_last=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    step = 0
    while step < args.steps:
        for images, kinds in loader:
            loss = F.cross_entropy(net(images), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
