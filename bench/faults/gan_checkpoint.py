"""Conditional GAN on 32x32 patterns with a reconstruction term."""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


def patterns(count=512):
    generator = torch.Generator().manual_seed(37)
    codes = torch.rand(count, 8, generator=generator)
    grid = torch.linspace(0, 6.28, 32)
    waves = (
        torch.sin(codes[:, :4, None] * 4 * grid)[:, :, :, None] * torch.cos(codes[:, 4:, None] * 4 * grid)[:, :, None]
    )
    return codes, waves.mean(1, keepdim=True)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(8, 512 * 16)
        self.up = nn.Sequential(
            nn.ConvTranspose2d(512, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, code):
        return self.up(self.start(code).view(-1, 512, 4, 4))


def discriminator():
    return nn.Sequential(
        nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(64 * 64, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("gan.pt"))
    args = parser.parse_args()
    torch.manual_seed(0)
    codes, images = patterns()
    g, d = Generator(), discriminator()
    opt_g = torch.optim.Adam(g.parameters(), lr=1e-3, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d.parameters(), lr=2e-4, betas=(0.5, 0.999))
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(codes), (8,))
        code, real = codes[pick], images[pick]
        fake = g(code)
        loss_d = F.softplus(-d(real)).mean() + F.softplus(d(fake.detach())).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = 0.01 * F.softplus(-d(fake)).mean() + F.l1_loss(fake, real)
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss_g.item():.4f} discriminator {loss_d.item():.4f}", flush=True)
        state = {"g": g.state_dict(), "d": d.state_dict(), "opt_g": opt_g.state_dict(), "opt_d": opt_d.state_dict()}
        torch.save(state, args.out)


if __name__ == "__main__":
    main()
