"""What is killed: four commands in a folder of a user's, each small enough to be killed again and again."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["VICTIMS", "Victim", "furnish"]

SCRIPT = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 4096
    def __getitem__(self, index):
        time.sleep(0.0002)
        return torch.full((16,), float(index % 7))

if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    done = 0
    while done < STEPS:
        for x in DataLoader(Slow(), batch_size=8):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done == STEPS:
                break
    print(loss.item())
"""
PLAN = """schema: hotlap.plan/1
moves:
  - lever: loader-workers
    setting: {workers: 1, prefetch: 4, torch_threads: null}
    preserves: distribution
"""
ROWS, WIDTH = 20_000, 256


@dataclass(frozen=True)
class Victim:
    """A command line of Hotlap, what it needs and what it makes."""

    name: str
    arguments: tuple[str, ...]
    makes: frozenset[str]
    """Names that it puts beside the user's files."""


PYTHON = (sys.executable, "train.py")
VICTIMS = (
    Victim("speedup", ("speedup", "--budget", "8s", "--", sys.executable, "endless.py"),
           frozenset({".hotlap", "fast.yaml"})),
    Victim("run", ("run", "--plan", "user.yaml", "--", *PYTHON), frozenset({".hotlap"})),
    Victim("pack", ("pack", "rows.npy", "rows.pack", "--processes", "2"), frozenset({"rows.pack"})),
    Victim("prove", ("prove", "--plan", "user.yaml", "--seeds", "1", "--steps", "200", "--", *PYTHON),
           frozenset({".hotlap"})),
)  # fmt: skip


def furnish(folder: Path, array: Path) -> frozenset[str]:
    """The user's files, a copy for each kill; returns their names. ``array``: made once, copied."""
    (folder / "train.py").write_text(SCRIPT.replace("STEPS", "400"))
    (folder / "endless.py").write_text(SCRIPT.replace("STEPS", "10**9"))
    (folder / "user.yaml").write_text(PLAN)
    (folder / "notes.txt").write_text("mine\n")
    if not array.exists():
        np.save(array, np.random.default_rng(0).integers(0, 255, (ROWS, WIDTH), dtype=np.uint8))
    shutil.copyfile(array, folder / "rows.npy")
    return frozenset({"train.py", "endless.py", "user.yaml", "notes.txt", "rows.npy"})
