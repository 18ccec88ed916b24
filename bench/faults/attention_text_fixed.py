"""A small encoder over long documents."""

import argparse

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, n, width = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(b, n, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, words=500, width=64, heads=8, length=512):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.layer = Layer(width, heads)
        self.head = nn.Linear(width, 4)

    def forward(self, ids):
        return self.head(self.layer(self.words(ids) + self.places).mean(1))


def documents(count=400, length=512):
    generator = torch.Generator().manual_seed(53)
    labels = torch.randint(0, 4, (count,), generator=generator)
    ids = torch.randint(0, 400, (count, length), generator=generator)
    marked = torch.rand(count, length, generator=generator) < 0.25
    return torch.where(marked, 400 + labels[:, None] * 25 + ids % 25, ids), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(0)
    ids, labels = documents()
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(ids), (2,))
        loss = nn.functional.cross_entropy(model(ids[pick]), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
