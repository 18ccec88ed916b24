"""Resident tabular data, bf16, nothing on the step's path but a print."""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(8192, 384)
    y = (x[:, :64].sum(1) > 0).long()
    model = nn.Sequential(nn.Linear(384, 384), nn.GELU(), nn.Linear(384, 384), nn.GELU(), nn.Linear(384, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(x), (448,))
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x[pick])
        loss = nn.functional.cross_entropy(logits.float(), y[pick])
        loss.backward()
        optimizer.step()
        print(f"\r{loss.item():.3f}", end="")
        if step == 1 or step % 20 == 0:
            print(f"\nstep {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
