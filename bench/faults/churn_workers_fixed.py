"""Customer churn from a table that lies in memory."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 48


class Customers(Dataset):
    def __init__(self, count=20_000):
        rng = np.random.default_rng(23)
        self.features = rng.standard_normal((count, FEATURES)).astype(np.float32)
        weights = rng.standard_normal(FEATURES).astype(np.float32)
        self.churned = (self.features @ weights + rng.standard_normal(count) > 0).astype(np.float32)

    def __len__(self):
        return len(self.churned)

    def __getitem__(self, index):
        return self.features[index], self.churned[index]


def make_loader(batch_size):
    return DataLoader(Customers(), batch_size, shuffle=True, drop_last=True)


def main(steps, batch_size):
    torch.manual_seed(0)
    loader = make_loader(batch_size)
    model = nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    while step < steps:
        for features, churned in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(features).squeeze(1), churned)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step >= steps:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    main(args.steps, args.batch_size)
