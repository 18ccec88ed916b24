"""A training whose steps are so many equal matrix products, so that ratios are known: `busy.py [PRODUCTS] [STEPS]`."""

import sys

import torch
from torch import nn

SIDE = 192
"""Of the matrices: some products of them take a millisecond of a CPU core, and the step's own model next to nothing."""


def main() -> None:
    products = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    left, right, out = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE), torch.empty(SIDE, SIDE)
    for _ in range(steps):
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for _ in range(products):
            torch.mm(left, right, out=out)


if __name__ == "__main__":
    main()
