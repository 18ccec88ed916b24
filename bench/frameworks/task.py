"""The training of this folder, but for its loop: each lever finds something to change in it.

Array files are loaded whole for each sample, batches are put together by ``torch.tensor``, part of the model computes
its activations twice, a frozen teacher is asked in each step, anomaly detection is on, a log is forced to disk.
``python task.py FOLDER`` makes the data.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from torch.utils.data import Dataset, TensorDataset

SHARDS, PER_SHARD, BATCH, EPOCHS, SIDE = 4, 24, 8, 2, 16


class Shards(Dataset):
    """Images in a few array files; each sample loads its file anew."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.labels = np.load(self.folder / "labels.npy")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        images = np.load(self.folder / self.file_of(index))
        return images[index % PER_SHARD], int(self.labels[index])

    def file_of(self, index):
        return f"images{index // PER_SHARD}.npy"


def collate(rows):
    return torch.tensor([image for image, _ in rows]), torch.tensor([label for _, label in rows])


def padded(rows):
    """All to one size, four times as large as need be; where their content ends is told."""
    images, labels = collate(rows)
    return {"pixels": F.pad(images, (0, 3 * SIDE, 0, 3 * SIDE)), "sizes": torch.full((len(rows), 2), SIDE)}, labels


class Content(nn.Module):
    """Images without what they are padded with."""

    def forward(self, images):
        return images["pixels"][:, :, :SIDE, :SIDE] if isinstance(images, dict) else images


def training_data(kind):
    """(data set, collate function): ``files`` as above, ``padded`` to one size, ``tensors`` all in memory."""
    shards = Shards("data")
    if kind != "tensors":
        return shards, padded if kind == "padded" else collate
    images = np.concatenate([np.load(f"data/images{k}.npy") for k in range(SHARDS)])
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(shards.labels)), None


def teacher():
    """A network that is asked and not trained."""
    torch.manual_seed(1)
    features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
    net = nn.Sequential(Content(), features, nn.Linear(8 * 16, 4))
    return net.requires_grad_(False).eval()


class Student(nn.Module):
    """Convolutions, the middle of which keep no activations."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.content = Content()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.middle = nn.Sequential(nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())
        self.last = nn.Linear(8 * 16, 4)

    def forward(self, images):
        hidden = torch.utils.checkpoint.checkpoint(self.middle, self.first(self.content(images)), use_reentrant=False)
        return self.last(F.adaptive_avg_pool2d(hidden, 4).flatten(1))


def loss_of(logits, wanted, labels):
    """With a term in fp16, which few processors compute in hardware."""
    with torch.autocast("cpu", dtype=torch.float16):
        likeness = (wanted @ wanted.T).float().mean()
    return F.cross_entropy(logits, labels) + 0.1 * F.mse_loss(logits, wanted) + 1e-3 * likeness


class RunLog:
    """A row per step, forced to disk."""

    def __init__(self, speaks=True):
        self.steps = 0
        self.speaks = speaks

    def step(self, loss):
        """Log a step, and say its loss exactly."""
        self.steps += 1
        torch.cuda.empty_cache()
        if self.speaks:
            with open("log.jsonl", "a") as file:
                file.write(json.dumps({"step": self.steps, "loss": loss}) + "\n")
                file.flush()
                os.fsync(file.fileno())
            print(f"step {self.steps} loss {loss.hex()}", flush=True)


def options(*flags):
    """``--data``, and the flags that one loop alone knows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", choices=("files", "tensors", "padded"), default="files")
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    return parser.parse_args()


def make(folder):
    """Write the array files: images whose brightest quarter is the label."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, SHARDS * PER_SHARD)
    images = rng.standard_normal((len(labels), 3, SIDE, SIDE)).astype(np.float32)
    half = SIDE // 2
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[:, row * half : (row + 1) * half, column * half : (column + 1) * half] += 1.0
    folder.mkdir(parents=True)
    np.save(folder / "labels.npy", labels)
    for k in range(SHARDS):
        np.save(folder / f"images{k}.npy", images[k * PER_SHARD : (k + 1) * PER_SHARD])


if __name__ == "__main__":
    make(Path(sys.argv[1]))
