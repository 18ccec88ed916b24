"""A training whose steps wait busily for a set time, so that ratios are known: `busy.py [MILLISECONDS] [STEPS]`."""

import sys
import time

import torch
from torch import nn


def main() -> None:
    step_s = float(sys.argv[1]) / 1000 if len(sys.argv) > 1 else 0.02
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        until = time.process_time() + step_s  # of this process: a neighbour's turn is no work of ours
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        while time.process_time() < until:
            pass


if __name__ == "__main__":
    main()
