"""Autoencoder in Lightning, with early stopping in mind."""

import argparse
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def patches(count, seed):
    generator = torch.Generator().manual_seed(seed)
    basis = torch.randn(12, 768, generator=torch.Generator().manual_seed(99))
    return torch.randn(count, 12, generator=generator) @ basis + 0.1 * torch.randn(count, 768, generator=generator)


class AutoEncoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(768, 256), nn.ReLU(), nn.Linear(256, 16))
        self.decoder = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 768))

    def training_step(self, batch, index):
        (x,) = batch
        loss = nn.functional.mse_loss(self.decoder(self.encoder(x)), x)
        step = self.global_step + 1
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        return loss

    def validation_step(self, batch, index):
        (x,) = batch
        self.log("val_loss", nn.functional.mse_loss(self.decoder(self.encoder(x)), x))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    L.seed_everything(0, verbose=False)
    train = DataLoader(TensorDataset(patches(12_800, 1)), batch_size=128, shuffle=True)
    valid = DataLoader(TensorDataset(patches(4_000, 2)), batch_size=64)
    trainer = L.Trainer(
        max_steps=args.steps,
        accelerator="cpu",
        val_check_interval=100,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(AutoEncoder(), train, valid)


if __name__ == "__main__":
    main()
