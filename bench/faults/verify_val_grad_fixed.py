"""Speaker verification on spectrogram patches with a margin loss."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Patches:
    def __init__(self, speakers=24, each=32, seed=0):
        generator = torch.Generator().manual_seed(seed)
        voices = torch.randn(speakers, 1, 40, 1, generator=torch.Generator().manual_seed(31))
        self.labels = torch.arange(speakers).repeat_interleave(each)
        self.patches = voices[self.labels] + torch.randn(len(self.labels), 1, 40, 64, generator=generator)

    def batch(self, size):
        pick = torch.randint(0, len(self.labels), (size,))
        return self.patches[pick], self.labels[pick]


class Embedder(nn.Module):
    def __init__(self, speakers=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
        )  # fmt: skip
        self.out = nn.Linear(32 * 5, 64)
        self.centres = nn.Parameter(torch.randn(speakers, 64))

    def forward(self, x):
        return F.normalize(self.out(self.body(x).mean(-1).flatten(1)))


class Verification:
    def __init__(self, args):
        self.args = args
        self.train_set, self.test_set = Patches(), Patches(each=24, seed=1)
        self.model = Embedder()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.2, momentum=0.9)

    def loss(self, patches, labels):
        cosine = self.model(patches) @ F.normalize(self.model.centres).t()
        margin = 0.2 * F.one_hot(labels, cosine.shape[1])
        return F.cross_entropy(16 * (cosine - margin), labels)

    @torch.inference_mode()
    def equal_error(self):
        self.model.eval()
        embeddings = torch.cat([self.model(part) for part in self.test_set.patches.split(8)])
        self.model.train()
        scores = (embeddings @ embeddings.t()).flatten()
        same = (self.test_set.labels[:, None] == self.test_set.labels[None]).flatten()
        order = scores.argsort(descending=True)
        found = same[order].float()
        misses = 1 - found.cumsum(0) / found.sum()
        alarms = (1 - found).cumsum(0) / (1 - found).sum()
        return misses[(misses - alarms).abs().argmin()].item()

    def run(self):
        for step in range(1, self.args.steps + 1):
            loss = self.loss(*self.train_set.batch(24))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step % self.args.val_every == 0:
                print(f"step {step} EER {self.equal_error():.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--val-every", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(0)
    Verification(args).run()
