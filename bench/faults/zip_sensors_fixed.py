"""Activity recognition from sensor windows kept in one zip archive."""

import argparse
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def build_archive(path: Path, windows: int = 400) -> None:
    rng = np.random.default_rng(2)
    t = np.linspace(0, 6, 128)
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(windows):
            wave = np.sin((1 + i % 6) * t)[:, None] * rng.uniform(0.5, 1.5, 9) + 0.4 * rng.standard_normal((128, 9))
            archive.writestr(f"{i % 6}/{i:05d}.bin", wave.astype(np.float32).tobytes())


class SensorWindows(Dataset):
    def __init__(self, path: Path):
        self.archive = zipfile.ZipFile(path)
        self.names = self.archive.namelist()

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int):
        name = self.names[index]
        raw = self.archive.read(name)
        window = torch.frombuffer(bytearray(raw), dtype=torch.float32).view(128, 9)
        return window.t(), int(name[0])


class Experiment:
    def __init__(self, path: Path, steps: int):
        self.steps = steps
        self.loader = DataLoader(SensorWindows(path), batch_size=8, shuffle=True, drop_last=True)
        self.model = nn.Sequential(
            nn.Conv1d(9, 64, 9, padding=4), nn.BatchNorm1d(64), nn.ReLU(),
            nn.Conv1d(64, 64, 9, padding=4), nn.BatchNorm1d(64), nn.ReLU(),
            nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(256, 6),
        )  # fmt: skip
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def batches(self):
        while True:
            yield from self.loader

    def run(self):
        for step, (window, label) in enumerate(self.batches(), start=1):
            loss = nn.functional.cross_entropy(self.model(window), label)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step == self.steps:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--archive", type=Path, default=Path("sensors.zip"))
    args = parser.parse_args()
    if not args.archive.exists():
        build_archive(args.archive)
    torch.manual_seed(0)
    Experiment(args.archive, args.steps).run()
