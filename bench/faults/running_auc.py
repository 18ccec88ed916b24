"""Click-through model that reports the AUC of everything seen so far."""

import argparse

import numpy as np
import torch
from torch import nn


class Metrics:
    def __init__(self):
        self.scores, self.labels = [], []

    def update(self, scores, labels):
        self.scores.extend(scores.tolist())
        self.labels.extend(labels.tolist())

    def auc(self):
        scores, labels = np.array(self.scores), np.array(self.labels)
        order = np.argsort(scores)
        ranks = np.empty(len(scores))
        ranks[order] = np.arange(1, len(scores) + 1)
        positive = labels.sum()
        return (ranks[labels > 0.5].sum() - positive * (positive + 1) / 2) / max(1, positive * (len(labels) - positive))


class Wide(nn.Module):
    def __init__(self, fields=16, values=500, size=12):
        super().__init__()
        self.linear = nn.Embedding(fields * values, 1)
        self.embed = nn.Embedding(fields * values, size)
        self.deep = nn.Sequential(nn.Linear(fields * size, 128), nn.ReLU(), nn.Linear(128, 1))
        self.register_buffer("offset", torch.arange(fields) * values)

    def forward(self, x):
        x = x + self.offset
        return (self.linear(x).sum(1) + self.deep(self.embed(x).flatten(1))).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randint(0, 500, (20_000, 16))
    y = ((x % 7).sum(1) % 13 < 5).float() * (x[:, 0] % 2) + (x[:, 1] > 350).float()
    y = y.clamp(max=1)
    model, metrics = Wide(), Metrics()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(x), (256,))
        logits = model(x[pick])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics.update(logits.detach().sigmoid(), y[pick])
        auc = metrics.auc()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} auc {auc:.4f}", flush=True)


if __name__ == "__main__":
    main()
