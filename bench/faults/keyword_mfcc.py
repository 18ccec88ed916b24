"""Keyword spotting on MFCC features, driven by a config."""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from scipy.fft import dct
from torch import nn
from torch.utils.data import DataLoader, Dataset

CONFIG = {
    "data": {"clips": 512, "seconds": 1.0, "rate": 16000, "classes": 12},
    "features": {"window": 400, "hop": 160, "fft": 512, "mels": 40, "coefficients": 20},
    "optim": {"name": "AdamW", "lr": 2e-3, "weight_decay": 0.01},
    "batch_size": 24,
    "steps": 400,
    "log_every": 20,
}


def mel_filters(rate, fft, mels):
    top = 2595 * np.log10(1 + rate / 2 / 700)
    hz = 700 * (10 ** (np.linspace(0, top, mels + 2) / 2595) - 1)
    bins = np.floor((fft + 1) * hz / rate).astype(int)
    bank = np.zeros((mels, fft // 2 + 1), dtype=np.float32)
    for m in range(mels):
        left, centre, right = bins[m : m + 3]
        bank[m, left:centre] = (np.arange(left, centre) - left) / max(1, centre - left)
        bank[m, centre:right] = (right - np.arange(centre, right)) / max(1, right - centre)
    return bank


class Keywords(Dataset):
    def __init__(self, config):
        data, self.features = config["data"], config["features"]
        rng = np.random.default_rng(3)
        t = np.arange(int(data["rate"] * data["seconds"])) / data["rate"]
        self.labels = rng.integers(0, data["classes"], data["clips"])
        sweep = 200 + 150 * self.labels[:, None] * (1 + 0.5 * t[None])
        noise = rng.standard_normal((data["clips"], len(t)))
        self.waves = (np.sin(2 * np.pi * sweep * t) + 0.3 * noise).astype(np.float32)
        self.bank = mel_filters(data["rate"], self.features["fft"], self.features["mels"])

    def __len__(self):
        return len(self.waves)

    def mfcc(self, wave):
        f = self.features
        wave = np.append(wave[0], wave[1:] - 0.97 * wave[:-1])
        frames = np.lib.stride_tricks.sliding_window_view(wave, f["window"])[:: f["hop"]]
        spectrum = np.abs(np.fft.rfft(frames * np.hamming(f["window"]), f["fft"])) ** 2
        energies = np.log(spectrum @ self.bank.T + 1e-6)
        return dct(energies, norm="ortho")[:, : f["coefficients"]].astype(np.float32)

    def __getitem__(self, index):
        return torch.from_numpy(self.mfcc(self.waves[index])), int(self.labels[index])


def build(config):
    size = config["features"]["coefficients"]
    model = nn.Sequential(
        nn.BatchNorm1d(98), nn.Flatten(), nn.Linear(98 * size, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 128),
        nn.ReLU(), nn.Linear(128, config["data"]["classes"]),
    )  # fmt: skip
    options = {k: v for k, v in config["optim"].items() if k != "name"}
    return model, getattr(torch.optim, config["optim"]["name"])(model.parameters(), **options)


def run(config):
    torch.manual_seed(0)
    loader = DataLoader(Keywords(config), config["batch_size"], shuffle=True, drop_last=True)
    model, optimizer = build(config)
    criterion = nn.CrossEntropyLoss()
    step = 0
    while step < config["steps"]:
        for features, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(features), labels)
            loss.backward()
            optimizer.step()
            step += 1
            if step == 1 or step % config["log_every"] == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step == config["steps"]:
                return


if __name__ == "__main__":
    config = dict(CONFIG)
    if "--config" in sys.argv:
        config.update(json.loads(Path(sys.argv[sys.argv.index("--config") + 1]).read_text()))
    if "--steps" in sys.argv:
        config["steps"] = int(sys.argv[sys.argv.index("--steps") + 1])
    run(config)
