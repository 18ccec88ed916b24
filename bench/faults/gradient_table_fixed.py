"""Tabular classifier that keeps a table of gradient statistics beside the training."""

import csv
import sys
from pathlib import Path

import torch
from torch import nn

SETTINGS = {"rows": 6000, "features": 64, "width": 256, "depth": 8, "batch": 128, "lr": 1e-3, "steps": 500}


def problem(settings):
    generator = torch.Generator().manual_seed(41)
    x = torch.randn(settings["rows"], settings["features"], generator=generator)
    y = (x[:, :8].prod(1).sign() + x[:, 8:16].sum(1) > 0).long()
    return x, y


def network(settings):
    layers, inside = [], settings["features"]
    for _ in range(settings["depth"]):
        layers += [nn.Linear(inside, settings["width"]), nn.LayerNorm(settings["width"]), nn.SiLU()]
        inside = settings["width"]
    return nn.Sequential(*layers, nn.Linear(inside, 2))


class GradientTable:
    def __init__(self, path: Path):
        self.file = path.open("w", newline="")
        self.writer = csv.writer(self.file)
        self.writer.writerow(["step", "name", "values"])

    def add(self, step, model):
        for name, parameter in model.named_parameters():
            if parameter.grad is None or parameter.ndim > 1:
                continue
            values = [f"{v:.6g}" for v in parameter.grad.tolist()]
            self.writer.writerow([step, name, *values])
        self.file.flush()


def train(settings):
    torch.manual_seed(0)
    x, y = problem(settings)
    model = network(settings)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings["lr"], foreach=True)
    table = GradientTable(Path("gradients.csv"))
    for step in range(1, settings["steps"] + 1):
        pick = torch.randint(0, len(x), (settings["batch"],))
        loss = nn.functional.cross_entropy(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        if step % 50 == 0:
            table.add(step, model)
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    if "--steps" in sys.argv:
        SETTINGS["steps"] = int(sys.argv[sys.argv.index("--steps") + 1])
    train(SETTINGS)
