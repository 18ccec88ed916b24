"""MLP-mixer on small image patches."""

import argparse

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule


class MixerLayer(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(tokens, tokens), nn.GELU(), nn.Linear(tokens, tokens))
        self.channels = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, width=48, depth=8):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, 8)
        self.layers = nn.Sequential(*(MixerLayer(16, width) for _ in range(depth)))
        self.head = nn.Linear(width, 6)

    def forward(self, x):
        return self.head(self.layers(self.patch(x).flatten(2).transpose(1, 2)).mean(1))


def images(count=2000):
    generator = torch.Generator().manual_seed(47)
    labels = torch.randint(0, 6, (count,), generator=generator)
    centres = torch.randn(6, 3, 32, 32, generator=generator)
    return centres[labels] + 1.5 * torch.randn(count, 3, 32, 32, generator=generator), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    torch.manual_seed(0)
    x, y = images()
    model = Mixer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, foreach=True)
    keep = schedule(wait=1, warmup=1, active=3, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=keep, record_shapes=True, with_stack=True) as profiler:
        for step in range(1, args.steps + 1):
            pick = torch.randint(0, len(x), (16,))
            loss = nn.functional.cross_entropy(model(x[pick]), y[pick])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            profiler.step()
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
