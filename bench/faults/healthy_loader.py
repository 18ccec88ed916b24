"""Sequence model fed by a loader whose batches are sliced whole from memory."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, length=20_000):
        generator = torch.Generator().manual_seed(83)
        t = torch.arange(length) / 40
        self.series = torch.sin(t) + 0.3 * torch.sin(7 * t) + 0.05 * torch.randn(length, generator=generator)
        self.windows = self.series.unfold(0, 129, 1).contiguous()

    def __len__(self):
        return len(self.windows)

    def __getitems__(self, indices):
        chosen = self.windows[torch.tensor(indices)]
        return chosen[:, :128], chosen[:, 128]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(Windows(), batch_size=192, shuffle=True, drop_last=True, collate_fn=lambda batch: batch)
    layers = [layer for _ in range(6) for layer in (nn.Linear(320, 320), nn.LayerNorm(320), nn.SiLU())]
    model = nn.Sequential(nn.Linear(128, 320), nn.SiLU(), *layers, nn.Linear(320, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, foreach=True)
    step = 0
    while step < args.steps:
        for past, ahead in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = model(past)
            loss = nn.functional.mse_loss(out.float().squeeze(-1), ahead)
            loss.backward()
            optimizer.step()
            step += 1
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()
