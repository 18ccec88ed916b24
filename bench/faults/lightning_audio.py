"""Environmental sounds in Lightning, with speed perturbation."""

import argparse
import logging
import warnings

import lightning as L
import numpy as np
import torch
from scipy import signal
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Sounds(Dataset):
    rate, seconds, classes = 8000, 1, 6

    def __init__(self, count=800):
        rng = np.random.default_rng(21)
        t = np.arange(self.rate * self.seconds) / self.rate
        self.labels = rng.integers(0, self.classes, count)
        tones = np.sin(2 * np.pi * (250 + 200 * self.labels[:, None]) * t) * np.exp(-3 * t)
        self.waves = (tones + 0.2 * rng.standard_normal((count, len(t)))).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def perturb(self, wave):
        up = np.random.choice([9, 10, 11])
        wave = signal.resample_poly(wave, int(up), 10, window=("kaiser", 8.0))
        return np.resize(wave, self.rate * self.seconds).astype(np.float32)

    def __getitem__(self, index):
        return torch.from_numpy(self.perturb(self.waves[index])), self.labels[index]


class SoundNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(129 * 63, 128), nn.ReLU(), nn.Linear(128, Sounds.classes))

    def forward(self, wave):
        spectrum = torch.stft(wave, 256, 128, window=self.window, return_complex=True)
        return self.net(torch.log1p(spectrum.abs()))

    def training_step(self, batch, index):
        wave, label = batch
        loss = nn.functional.cross_entropy(self(wave), label)
        if self.global_step == 0 or (self.global_step + 1) % 20 == 0:
            print(f"step {self.global_step + 1} loss {loss.item():.4f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    L.seed_everything(0, verbose=False)
    loader = DataLoader(Sounds(), batch_size=32, shuffle=True, drop_last=True)
    trainer = L.Trainer(
        max_steps=args.steps,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(SoundNet(), loader)
