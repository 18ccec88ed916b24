"""Curriculum training: each round trains on the easier part of the data, and then a little more."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Spirals(Dataset):
    def __init__(self, count=4000):
        generator = torch.Generator().manual_seed(4)
        self.labels = torch.randint(0, 3, (count,), generator=generator)
        t = torch.rand(count, generator=generator).sort().values
        angle = 4 * t + self.labels * 2.1
        points = torch.stack([t * angle.cos(), t * angle.sin()], 1)
        self.points = points + 0.02 * torch.randn(count, 2, generator=generator)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        powers = torch.arange(1, 33, dtype=torch.float32)
        x, y = self.points[index]
        return torch.cat([(x * powers).sin(), (y * powers).cos()]), self.labels[index]


def loader_for(dataset, share):
    easy = range(int(len(dataset) * share))
    return DataLoader(Subset(dataset, easy), batch_size=64, shuffle=True, num_workers=2, drop_last=True)


def train_round(model, optimizer, loader, step, steps):
    for features, labels in loader:
        loss = nn.functional.cross_entropy(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step >= steps:
            break
    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    dataset = Spirals()
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, share = 0, 0.16
    while step < args.steps:
        loader = loader_for(dataset, share)
        step = train_round(model, optimizer, loader, step, args.steps)
        share = min(0.2, share + 0.002)


if __name__ == "__main__":
    main()
