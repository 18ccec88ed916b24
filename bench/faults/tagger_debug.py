"""Part-of-speech tagging with a small convolutional network."""

import argparse
import logging
import sys

import torch
from torch import nn

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
log = logging.getLogger("tagger")

DEFAULTS = {"words": 200, "tags": 12, "length": 24, "hidden": 48, "batch": 16, "lr": 3e-3, "debug": True}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.conv = nn.Conv1d(width, width, 3, padding=1)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        hidden = self.conv(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mix(nn.functional.gelu(hidden))


class Tagger(nn.Module):
    def __init__(self, words, tags, hidden):
        super().__init__()
        self.embed = nn.Embedding(words, hidden)
        self.body = nn.Sequential(*(Block(hidden) for _ in range(8)))
        self.out = nn.Linear(hidden, tags)

    def forward(self, ids):
        return self.out(self.body(self.embed(ids)))


def sentences(config, count=4000):
    generator = torch.Generator().manual_seed(43)
    ids = torch.randint(0, config["words"], (count, config["length"]), generator=generator)
    previous = torch.cat([ids[:, :1], ids[:, :-1]], 1)
    return ids, (ids % 6) + 6 * (previous % 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    for name, value in DEFAULTS.items():
        if not isinstance(value, bool):
            parser.add_argument(f"--{name}", type=type(value), default=value)
    config = {**DEFAULTS, **vars(parser.parse_args())}
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(config["debug"])
    ids, tags = sentences(config)
    model = Tagger(config["words"], config["tags"], config["hidden"])
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    for step in range(1, config["steps"] + 1):
        pick = torch.randint(0, len(ids), (config["batch"],))
        logits = model(ids[pick])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags[pick].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step == 1 or step % 20 == 0:
            log.info("step %d loss %.4f", step, loss.item())


if __name__ == "__main__":
    main()
