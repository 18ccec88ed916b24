"""Few-shot fine-tuning: a small labelled set, many epochs."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class FewShot(Dataset):
    def __init__(self, shots=24, classes=8, size=48):
        rng = np.random.default_rng(9)
        centres = rng.standard_normal((classes, 3, size, size)).astype(np.float32)
        self.labels = np.repeat(np.arange(classes), shots)
        noise = rng.standard_normal((len(self.labels), 3, size, size)).astype(np.float32)
        self.images = 0.6 * centres[self.labels] + noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if np.random.rand() < 0.5:
            image = image[:, :, ::-1].copy()
        return torch.from_numpy(image), self.labels[index]


class FineTuner:
    def __init__(self, steps):
        self.steps = steps
        self.loader = DataLoader(FewShot(), batch_size=16, shuffle=True, num_workers=2)
        self.model = nn.Sequential(
            nn.Conv2d(3, 24, 3, 2, 1), nn.ReLU(), nn.Conv2d(24, 48, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(6),
            nn.Flatten(), nn.Linear(48 * 36, 128), nn.ReLU(), nn.Linear(128, 8),
        )  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.step = 0

    def epoch(self):
        total = 0.0
        for images, labels in self.loader:
            loss = nn.functional.cross_entropy(self.model(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.step += 1
            total += loss.item()
            if self.step == 1 or self.step % 20 == 0:
                print(f"step {self.step} loss {loss.item():.4f}", flush=True)
            if self.step >= self.steps:
                break
        return total / len(self.loader)

    def fit(self):
        best = float("inf")
        while self.step < self.steps:
            best = min(best, self.epoch())
        print(f"best epoch loss {best:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    np.random.seed(0)
    FineTuner(args.steps).fit()
