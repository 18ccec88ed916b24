"""Load forecasting on windows drawn from a long series."""

import argparse
import math
import random

import torch
from torch import nn

SERIES = 60_000
PAST, AHEAD, BATCH = 168, 24, 48


def make_series():
    rng = random.Random(17)
    level, series = 0.0, []
    for hour in range(SERIES):
        level = 0.98 * level + rng.gauss(0, 0.1)
        series.append(level + math.sin(hour * math.tau / 24) + 0.4 * math.sin(hour * math.tau / 168))
    return series


def window_batches(series, rng):
    windows = torch.tensor(series, dtype=torch.float64).unfold(0, PAST + AHEAD, 1)
    while True:
        starts = [rng.randrange(0, len(series) - PAST - AHEAD) for _ in range(BATCH)]
        chosen = windows[torch.tensor(starts)]
        scale, mean = torch.std_mean(chosen[:, :PAST], dim=1, correction=0, keepdim=True)
        chosen = ((chosen - mean) / (scale + 1e-6)).float()
        yield chosen[:, :PAST], chosen[:, PAST:]


class Forecaster(nn.Module):
    def __init__(self, hidden=192):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(PAST, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        self.skip = nn.Linear(PAST, AHEAD)
        self.head = nn.Linear(hidden, AHEAD)

    def forward(self, past):
        return self.skip(past) + self.head(self.body(past))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    args = parser.parse_args()
    torch.manual_seed(0)
    batches = window_batches(make_series(), random.Random(0))
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, args.steps + 1):
        past, ahead = next(batches)
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(past), ahead)
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
