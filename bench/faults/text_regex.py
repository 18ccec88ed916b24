"""Topic classification of short documents."""

import argparse
import random
import re
from collections import Counter
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

TOKEN = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
STOP = {"the", "of", "and", "a", "to", "in", "is", "it"}
ENDINGS = ("ing", "ed", "ly", "es", "s")
LENGTH = 160


def write_corpus(path: Path, documents: int = 600) -> None:
    rng = random.Random(7)
    topics = [[f"{t}{''.join(rng.choices('abcdefghij', k=5))}" for _ in range(150)] for t in "pqrst"]
    shared = [*STOP, *("".join(rng.choices("klmnop", k=4)) for _ in range(300))]
    lines = []
    for i in range(documents):
        words = [rng.choice(topics[i % 5]) if rng.random() < 0.15 else rng.choice(shared) for _ in range(260)]
        lines.append(
            f"{i % 5}\t" + ", ".join(" ".join(w.capitalize() for w in words[k : k + 9]) for k in range(0, 260, 9))
        )
    path.write_text("\n".join(lines))


def tokenize(text):
    tokens = []
    for token in TOKEN.findall(text.lower()):
        if token in STOP or not token.isalnum():
            continue
        for ending in ENDINGS:
            if token.endswith(ending):
                token = token[: -len(ending)]
                break
        tokens.append(token)
    return tokens


class Documents(Dataset):
    def __init__(self, path):
        rows = [line.split("\t") for line in path.read_text().splitlines()]
        self.texts = [text for _, text in rows]
        self.labels = [int(label) for label, _ in rows]
        counts = Counter(token for text in self.texts for token in tokenize(text))
        self.vocabulary = {token: k + 1 for k, (token, _) in enumerate(counts.most_common(2000))}

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        ids = [self.vocabulary.get(token, 0) for token in tokenize(self.texts[i])][:LENGTH]
        return torch.tensor(ids + [0] * (LENGTH - len(ids))), self.labels[i]


class Classifier(nn.Module):
    def __init__(self, words, classes):
        super().__init__()
        self.embedding = nn.Embedding(words, 64, padding_idx=0)
        self.mix = nn.Linear(64, 64)
        self.out = nn.Linear(64, classes)

    def forward(self, ids):
        return self.out(F.relu(self.mix(self.embedding(ids).sum(1) / 8)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--corpus", type=Path, default=Path("corpus.tsv"))
    args = parser.parse_args()
    if not args.corpus.exists():
        write_corpus(args.corpus)
    torch.manual_seed(1)
    loader = DataLoader(Documents(args.corpus), batch_size=32, shuffle=True, drop_last=True)
    model = Classifier(2001, 5)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    for epoch in range(10_000):
        for ids, labels in loader:
            opt.zero_grad()
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            opt.step()
            step += 1
            if step == 1 or step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            if step >= args.steps:
                return


if __name__ == "__main__":
    main()
