"""Character language model with Accelerate; every step is written to a run log."""

import argparse
import json
import time
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the angry bear in the dark forest "


class RunLog:
    def __init__(self, path: Path):
        self.file = path.open("w")
        self.started = time.time()

    def write(self, step, loss, model):
        weights = {name: p.detach().flatten().tolist() for name, p in model.named_parameters() if p.numel() < 5000}
        row = {"step": step, "loss": loss, "seconds": time.time() - self.started, "weights": weights}
        self.file.write(json.dumps(row) + "\n")


class CharModel(nn.Module):
    def __init__(self, characters, size=96):
        super().__init__()
        self.embed = nn.Embedding(characters, size)
        self.rnn = nn.GRU(size, size, batch_first=True)
        self.norm = nn.LayerNorm(size)
        self.out = nn.Linear(size, characters)

    def forward(self, ids):
        return self.out(self.norm(self.rnn(self.embed(ids))[0]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--log", type=Path, default=Path("run.jsonl"))
    args = parser.parse_args()
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    alphabet = sorted(set(TEXT))
    ids = torch.tensor([alphabet.index(c) for c in TEXT * 60])
    windows = ids.unfold(0, 33, 3)
    loader = DataLoader(TensorDataset(windows), batch_size=32, shuffle=True, drop_last=True)
    model = CharModel(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    log = RunLog(args.log)
    step = 0
    while step < args.steps:
        for (window,) in loader:
            logits = model(window[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            step += 1
            if step % 20 == 0:
                log.write(step, loss.item(), model)
            if step == 1 or step % 20 == 0:
                accelerator.print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()
