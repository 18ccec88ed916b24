"""Run as ``python -m pkg.train --steps 12``."""

import argparse
import sys

import torch
import torch.nn.functional as F
from toy import loader, net, write_losses

from . import train as again  # noqa: F401  a module that imports itself under its real name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    while len(losses) < args.steps:
        for x, y in loader():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == args.steps:
                break
    print(__name__, __package__, sys.argv[1:], sys.modules["__main__"].__spec__.name)
    write_losses(losses)


if __name__ == "__main__":
    main()
