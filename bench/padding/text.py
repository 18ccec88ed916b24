"""A text classifier whose batches are padded: to one length for all, or each to its longest text. For bench/padding.py.

Lengths are drawn by a lognormal law (median 50 words, sigma 0.7), as those of comments and reviews are.
"""

from __future__ import annotations

import argparse
import random

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

LONGEST, WORDS, WIDTH = 256, 800, 96


def texts(count: int) -> list[tuple[Tensor, int]]:
    dice = random.Random(0)
    found = []
    for _ in range(count):
        length, label = min(LONGEST, max(6, int(dice.lognormvariate(3.9, 0.7)))), dice.randrange(2)
        topic = 600 + 100 * label
        words = [dice.randrange(2, 600) if dice.random() < 0.85 else topic + dice.randrange(100) for _ in range(length)]
        found.append((torch.tensor(words), label))
    return found


def longest_of_batch(samples: list[tuple[Tensor, int]]) -> dict[str, Tensor]:
    words = [sample[0] for sample in samples]
    mask = pad_sequence([torch.ones(len(w), dtype=torch.long) for w in words], batch_first=True)
    labels = torch.tensor([sample[1] for sample in samples])
    return {"input_ids": pad_sequence(words, batch_first=True), "attention_mask": mask, "labels": labels}


def one_length(samples: list[tuple[Tensor, int]]) -> dict[str, Tensor]:
    batch = longest_of_batch(samples)
    short = LONGEST - batch["input_ids"].shape[1]
    return {name: nn.functional.pad(t, (0, short)) if t.dim() == 2 else t for name, t in batch.items()}


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH, padding_idx=0), nn.Embedding(LONGEST, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        x = self.encoder(x, src_key_padding_mask=attention_mask == 0)
        content = attention_mask[..., None]
        found: Tensor = self.out((x * content).sum(1) / content.sum(1))
        return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--one-length", action="store_true", help="pad every batch to 256 words")
    args = parser.parse_args()
    torch.manual_seed(0)
    collate = one_length if args.one_length else longest_of_batch
    loader = DataLoader(texts(4000), batch_size=16, shuffle=True, collate_fn=collate)  # type: ignore[arg-type]
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step = content = computed = 0
    while step < args.steps:
        for batch in loader:
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = nn.functional.cross_entropy(logits, batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            content, computed = content + int(batch["attention_mask"].sum()), computed + batch["input_ids"].numel()
            print(f"step {step}  loss {loss.item():.4f}", flush=True)
            if step == args.steps:
                break
    print(f"content {content / computed:.4f}", flush=True)


if __name__ == "__main__":
    main()
