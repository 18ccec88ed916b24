"""What the animals share: a small model, data and a file of losses. Deterministic."""

import atexit
import gc

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
atexit.register(gc.freeze)  # the interpreter ends a second sooner


class Blobs(Dataset):
    def __init__(self, n=96):
        gen = torch.Generator().manual_seed(7)
        self.x = torch.randn(n, 8, generator=gen)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, k):
        return self.x[k] + 0.01 * torch.randn(8), self.y[k]


def net():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))


def loader(**kw):
    return DataLoader(Blobs(), batch_size=16, shuffle=True, **kw)


def write_losses(losses, name="losses.txt"):
    with open(name, "w") as out:
        out.writelines(f"{float(v).hex()}\n" for v in losses)
    print("steps", len(losses), "last loss", f"{float(losses[-1]):.6f}")
