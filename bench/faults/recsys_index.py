"""Matrix factorisation with side features on click logs."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def click_log(users, articles, clicks):
    rng = random.Random(13)
    names = [f"sku-{rng.getrandbits(40):010x}" for _ in range(articles)]
    rows = []
    for _ in range(clicks):
        user = rng.randrange(users)
        article = rng.randrange(articles)
        rows.append((user, names[article], 1.0 if (user + article) % 3 == 0 else 0.0))
    return names, rows


class Clicks(Dataset):
    def __init__(self, names, rows):
        self.names = names
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        user, name, clicked = self.rows[i]
        article = self.names.index(name)
        return user, article, article % 3, clicked


class Factors(nn.Module):
    def __init__(self, users, articles, size=32):
        super().__init__()
        self.user = nn.Embedding(users, size)
        self.article = nn.Embedding(articles, size)
        self.kind = nn.Embedding(3, size)
        self.deep = nn.Sequential(nn.Linear(3 * size, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, user, article, kind):
        u, a, k = self.user(user), self.article(article), self.kind(kind)
        return (u * (a + k)).sum(-1) + self.deep(torch.cat([u, a, k], -1)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(0)
    users, articles = 30, 8000
    names, rows = click_log(users, articles, 12_000)
    loader = DataLoader(Clicks(names, rows), batch_size=192, shuffle=True, drop_last=True)
    model = Factors(users, articles)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    step, average = 0, None
    while step < args.steps:
        for user, article, kind, clicked in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(user, article, kind), clicked.float())
            loss.backward()
            optimizer.step()
            average = loss.item() if average is None else 0.9 * average + 0.1 * loss.item()
            step += 1
            if step == 1 or step % 20 == 0:
                print(f"step {step} loss {average:.4f}", flush=True)
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()
