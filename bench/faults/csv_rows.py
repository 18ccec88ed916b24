"""Demand regression on a CSV of transactions."""

import argparse
import random
from datetime import datetime, timedelta
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COLUMNS = 90


def write_csv(path: Path, rows: int = 4000) -> None:
    rng = random.Random(19)
    weights = [rng.gauss(0, 1) for _ in range(COLUMNS)]
    start = datetime(2024, 1, 1)
    with path.open("w") as file:
        for i in range(rows):
            when = start + timedelta(hours=i)
            values = [rng.gauss(0, 1) for _ in range(COLUMNS)]
            target = sum(w * v for w, v in zip(weights, values, strict=True)) / 9 + (when.weekday() >= 5)
            fields = [f"{when:%d.%m.%Y %H:%M}", *(f"{v:.6f}".replace(".", ",") for v in [*values, target])]
            file.write(";".join(fields) + "\n")


class Transactions(Dataset):
    def __init__(self, path: Path):
        self.lines = path.read_text().splitlines()

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        fields = self.lines[index].split(";")
        when = datetime.strptime(fields[0], "%d.%m.%Y %H:%M")
        calendar = [when.hour / 24, when.weekday() / 7, when.month / 12, float(when.weekday() >= 5)]
        numbers = [float(value.strip().replace(",", ".")) for value in fields[1:]]
        return torch.tensor(calendar + numbers[:-1]), torch.tensor(numbers[-1])


def main(steps: int, path: Path, batch_size: int):
    if not path.exists():
        write_csv(path)
    torch.manual_seed(0)
    loader = DataLoader(Transactions(path), batch_size, shuffle=True, drop_last=True)
    model = nn.Sequential(
        nn.Linear(COLUMNS + 4, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1), nn.Flatten(0)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    while step < steps:
        for features, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(features), target)
            loss.backward()
            optimizer.step()
            step += 1
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step >= steps:
                break


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--csv", type=Path, default=Path("transactions.csv"))
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()
    main(args.steps, args.csv, args.batch_size)
