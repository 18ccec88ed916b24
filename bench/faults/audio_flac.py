"""Speaker classification from FLAC recordings."""

import argparse
import random
from pathlib import Path

import numpy as np
import soundfile as sf
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 16000
SPEAKERS = 8


def make_recordings(root: Path) -> None:
    if (root / "done").exists():
        return
    root.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    t = np.arange(4 * RATE) / RATE
    for i in range(160):
        pitch = 110 + 45 * (i % SPEAKERS)
        voice = sum(np.sin(2 * np.pi * pitch * k * t + rng.uniform(0, 6)) / k for k in range(1, 6))
        sf.write(root / f"{i % SPEAKERS}_{i:03d}.flac", 0.1 * voice + 0.02 * rng.standard_normal(len(t)), RATE)
    (root / "done").touch()


class Recordings(Dataset):
    def __init__(self, root: Path):
        self.files = sorted(root.glob("*.flac"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path = self.files[index]
        wave, _ = sf.read(path, dtype="float32")
        start = random.randint(0, len(wave) - RATE)
        return torch.from_numpy(wave[start : start + RATE]), int(path.stem.split("_")[0])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv1d(1, 24, 80, stride=16), nn.BatchNorm1d(24), nn.ReLU(),
            nn.Conv1d(24, 48, 8, stride=4), nn.BatchNorm1d(48), nn.ReLU(),
            nn.Conv1d(48, 64, 8, stride=4), nn.BatchNorm1d(64), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(64, SPEAKERS)

    def forward(self, x):
        return self.head(self.convs(x.unsqueeze(1)).mean(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--data", type=Path, default=Path("recordings"))
    args = parser.parse_args()
    make_recordings(args.data)
    random.seed(0)
    torch.manual_seed(0)
    loader = DataLoader(Recordings(args.data), batch_size=16, shuffle=True, drop_last=True)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    step = 0
    while step < args.steps:
        for wave, label in loader:
            loss = F.cross_entropy(model(wave), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()
