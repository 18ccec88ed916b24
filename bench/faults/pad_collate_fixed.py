"""Sentence pair scoring with padded batches."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD = 0


class Pairs(Dataset):
    def __init__(self, count=3000, words=4000):
        rng = random.Random(11)
        self.pairs = []
        for _ in range(count):
            left = [rng.randrange(1, words) for _ in range(rng.randrange(60, 200))]
            same = rng.random() < 0.5
            right = left[: len(left) // 2] if same else [rng.randrange(1, words) for _ in range(rng.randrange(60, 200))]
            self.pairs.append((left, right, float(same)))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]


def pad_batch(rows):
    lengths = torch.tensor([len(row) for row in rows])
    ids = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
    places = torch.arange(ids.shape[1]).expand(len(rows), -1)
    mask = places < lengths[:, None]
    return ids, mask.float(), places * mask


def collate_fn(batch):
    left = pad_batch([row[0] for row in batch])
    right = pad_batch([row[1] for row in batch])
    return left, right, torch.tensor([row[2] for row in batch])


class Encoder(nn.Module):
    def __init__(self, words=4000, size=48):
        super().__init__()
        self.words = nn.Embedding(words, size, padding_idx=PAD)
        self.places = nn.Embedding(256, size)
        self.mix = nn.Sequential(nn.Linear(size, size), nn.Tanh())

    def forward(self, ids, mask, positions):
        hidden = self.mix(self.words(ids) + 0.1 * self.places(positions)) * mask.unsqueeze(-1)
        return hidden.sum(1) / mask.sum(1, keepdim=True)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Bilinear(48, 48, 1)
        self.scale = nn.Parameter(torch.tensor(5.0))

    def forward(self, left, right):
        a, b = self.encoder(*left), self.encoder(*right)
        return self.scale * torch.cosine_similarity(a, b) + self.head(a, b).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(Pairs(), batch_size=48, shuffle=True, collate_fn=collate_fn, drop_last=True)
    model = Scorer()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.BCEWithLogitsLoss()
    step = 0
    while step < args.steps:
        for left, right, target in loader:
            loss = criterion(model(left, right), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == 1 or step % 20 == 0:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()
