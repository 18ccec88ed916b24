"""Anchor classification with annotations kept as Python objects."""

import argparse
import gc
import random
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Box:
    x: float
    y: float
    w: float
    h: float
    tags: list = field(default_factory=list)


@dataclass
class Scene:
    boxes: list
    features: torch.Tensor
    label: int


def scenes(count=1500):
    rng = random.Random(61)
    generator = torch.Generator().manual_seed(61)
    centres = torch.randn(10, 128, generator=generator)
    out = []
    for i in range(count):
        boxes = [Box(rng.random(), rng.random(), rng.random(), rng.random(), [str(k)]) for k in range(12)]
        noise = torch.randn(128, generator=generator)
        out.append(Scene(boxes, centres[i % 10] + noise, i % 10))
    return out


def batch_of(chosen):
    features = torch.stack([scene.features for scene in chosen])
    geometry = torch.tensor([[(b.x, b.y, b.w, b.h) for b in scene.boxes] for scene in chosen]).flatten(1)
    return torch.cat([features, geometry], 1), torch.tensor([scene.label for scene in chosen])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    data, rng = scenes(), random.Random(0)
    model = nn.Sequential(nn.Linear(176, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, args.steps + 1):
        x, y = batch_of(rng.sample(data, 32))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        del x, y
        gc.collect()


if __name__ == "__main__":
    main()
