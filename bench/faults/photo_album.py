"""Photographs of one of six patterns, made small and mirrored at random. Each photo is a JPEG of its own."""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

KINDS = 6


def make_album(folder: Path, photos: int = 240, width: int = 800, height: int = 600) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(11)
    y, x = np.mgrid[0:height, 0:width] / height
    for number in range(photos):
        path = folder / f"{number:03d}.jpg"
        if path.exists():
            continue
        turn = number % KINDS * np.pi / KINDS
        waves = np.sin(40 * (x * np.cos(turn) + y * np.sin(turn)) + rng.uniform(0, 6))
        light = 128 + 90 * waves[..., None] * rng.uniform(0.3, 1, 3)
        grain = rng.normal(0, 12, (height, width, 1))
        Image.fromarray(np.clip(light + grain, 0, 255).astype(np.uint8)).save(path, quality=90)
    return folder


@dataclass
class Options:
    size: int = 64
    batch: int = 16
    rate: float = 0.03


class Album(Dataset):
    def __init__(self, folder: Path, options: Options) -> None:
        self.paths = sorted(folder.glob("*.jpg"))
        self.options = options

    def __len__(self) -> int:
        return len(self.paths)

    def thumbnail(self, index: int) -> Image.Image:
        photo = Image.open(self.paths[index]).convert("RGB")
        side = min(photo.size)
        left, top = (photo.width - side) // 2, (photo.height - side) // 2
        photo = photo.crop((left, top, left + side, top + side))
        return photo.resize((self.options.size + 8, self.options.size + 8), Image.Resampling.LANCZOS)

    def __getitem__(self, index: int):
        photo = self.thumbnail(index)
        left, top = random.randint(0, 8), random.randint(0, 8)
        photo = photo.crop((left, top, left + self.options.size, top + self.options.size))
        if random.random() < 0.5:
            photo = photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(photo)).permute(2, 0, 1).float() / 127.5 - 1
        return pixels, index % KINDS


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 5, stride=2, padding=2)
        self.body = nn.Conv2d(24, 48, 3, stride=2, padding=1)
        self.head = nn.Linear(48, KINDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.relu(self.body(F.relu(self.stem(x)))).mean((2, 3)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--album", type=Path, default=Path("album"))
    args = parser.parse_args()
    torch.manual_seed(2)
    random.seed(2)
    options = Options()
    loader = DataLoader(Album(make_album(args.album), options), options.batch, shuffle=True, drop_last=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=options.rate, momentum=0.9)
    step = 0
    while step < args.steps:
        for pixels, kind in loader:
            loss = F.cross_entropy(net(pixels), kind)
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
