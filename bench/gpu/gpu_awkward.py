"""Trainings that are awkward on a GPU, each by its name, on ``cuda`` (or ``cpu``, to try them out).

    python bench/gpu/gpu_awkward.py late VALUE | free DEVICE | large DEVICE

late    sets CUDA_VISIBLE_DEVICES to VALUE after importing torch, says which devices it sees, and trains a little
free    trains for as long as it is let, and never waits for the device
large   the same with a loader, and 60 % of the card taken: two of them do not fit
"""

from __future__ import annotations

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FULL = 0.6
STEPS = 1_000_000


def train(device: str, steps: int, width: int, *, loads: bool = False) -> float:
    """Seen from the host the steps are launches alone: the loss is read once, at the end."""
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    rows = TensorDataset(torch.randn(4096, width), torch.randint(0, 10, (4096,)))
    loader = DataLoader(rows, 512, shuffle=True, drop_last=True)
    x, y = (t.to(device) for t in next(iter(loader)))
    coming = iter(loader)
    for _ in range(steps):
        if loads:
            batch = next(coming, None)
            if batch is None:
                coming = iter(loader)
                batch = next(coming)
            x, y = (t.to(device) for t in batch)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def main() -> None:
    """As the first argument says."""
    name, value = sys.argv[1:]
    if name == "late":
        os.environ["CUDA_VISIBLE_DEVICES"] = value
        found = torch.cuda.is_available()
        print(f"{torch.cuda.device_count()} devices, loss {train('cuda' if found else 'cpu', 30, 64):.4f}")
        return
    width = 2048 if value == "cuda" else 256
    taken = []
    if name == "large" and value == "cuda":
        taken.append(torch.empty(int(FULL * torch.cuda.mem_get_info()[1]), dtype=torch.uint8, device=value))
    train(value, STEPS, width, loads=name == "large")


if __name__ == "__main__":
    main()
