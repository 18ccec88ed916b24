"""Denoising autoencoder; settings come from the cluster's job file."""

import json
import os
import sys

import torch
from torch import nn

JOB = {"threads": 16, "batch": 32, "steps": 300, "lr": 1e-3, "width": 256}


def setup(job):
    torch.manual_seed(0)
    torch.set_num_threads(job["threads"])


def build(width):
    return nn.Sequential(
        nn.Conv1d(1, 32, 9, 2, 4), nn.ReLU(), nn.Conv1d(32, 64, 9, 2, 4), nn.ReLU(),
        nn.Conv1d(64, 64, 9, 2, 4), nn.ReLU(),
        nn.ConvTranspose1d(64, 32, 8, 2, 3), nn.ReLU(), nn.ConvTranspose1d(32, 16, 8, 2, 3), nn.ReLU(),
        nn.ConvTranspose1d(16, 1, 8, 2, 3),
    )  # fmt: skip


def signals(count, length):
    t = torch.linspace(0, 20, length)
    return torch.sin(torch.rand(count, 1, 1) * 5 * t + torch.rand(count, 1, 1) * 6)


def train(job):
    setup(job)
    clean = signals(1024, job["width"])
    model = build(job["width"])
    optimizer = torch.optim.Adam(model.parameters(), lr=job["lr"])
    for step in range(1, job["steps"] + 1):
        target = clean[torch.randint(0, len(clean), (job["batch"],))]
        loss = nn.functional.mse_loss(model(target + 0.3 * torch.randn_like(target)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    job = {**JOB, **json.loads(os.environ.get("JOB", "{}"))}
    if "--steps" in sys.argv:
        job["steps"] = int(sys.argv[sys.argv.index("--steps") + 1])
    train(job)
