"""Image classifier with a small trainer class. Images lie as compressed .npz files, one each."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def prepare(folder: Path, count: int = 320, size: int = 112) -> Path:
    if not (folder / "index.txt").exists():
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(1)
        yy, xx = np.mgrid[0:size, 0:size]
        names = []
        for i in range(count):
            label = i % 10
            base = 127 + 80 * np.sin((xx * np.cos(label * 0.3) + yy * np.sin(label * 0.3)) / (3 + label % 3))
            image = np.clip(base[..., None] + rng.normal(0, 15, (size, size, 3)), 0, 255).astype(np.uint8)
            np.savez_compressed(folder / f"{i:04d}.npz", image=image, label=label)
            names.append(f"{i:04d}.npz")
        (folder / "index.txt").write_text("\n".join(names))
    return folder


class ImageFolder(Dataset):
    mean, std = 127.0, 60.0

    def __init__(self, folder: Path, train: bool = True):
        self.folder = folder
        names = (folder / "index.txt").read_text().split()
        self.names = names[:288] if train else names[288:]

    def __len__(self) -> int:
        return len(self.names)

    def load(self, name: str):
        with np.load(self.folder / name) as item:
            return item["image"], int(item["label"])

    def __getitem__(self, i):
        image, label = self.load(self.names[i])
        top, left = np.random.randint(0, 17, 2)
        crop = image[top : top + 96, left : left + 96]
        if np.random.rand() < 0.5:
            crop = crop[:, ::-1]
        tensor = torch.from_numpy(np.ascontiguousarray(crop.transpose(2, 0, 1)))
        return (tensor.float() - self.mean) / self.std, label


class Trainer:
    def __init__(self, args):
        self.args = args
        folder = prepare(args.data)
        self.train_loader = DataLoader(ImageFolder(folder), batch_size=24, shuffle=True, drop_last=True)
        self.valid_loader = DataLoader(ImageFolder(folder, train=False), batch_size=32)
        self.model = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=4, padding=2), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
        )  # fmt: skip
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.global_step = 0

    def train_step(self, image, label):
        self.model.train()
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(image), label)
        loss.backward()
        self.optimizer.step()
        self.global_step += 1
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        right = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.valid_loader)
        print(f"validation accuracy {right / len(self.valid_loader.dataset):.3f}", flush=True)

    def fit(self):
        while self.global_step < self.args.steps:
            for image, label in self.train_loader:
                loss = self.train_step(image, label)
                if self.global_step == 1 or self.global_step % 20 == 0:
                    print(f"[step {self.global_step}] loss {loss:.4f}", flush=True)
                if self.global_step >= self.args.steps:
                    break
                if self.global_step % 200 == 0:
                    self.validate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--data", type=Path, default=Path("images"))
    args = parser.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    Trainer(args).fit()
