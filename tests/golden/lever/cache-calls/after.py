import functools

import torch


class Collate:
    def __init__(self, ids):
        self.ids = ids
        self.encode = functools.cache(self.encode)

    def encode(self, text):
        return [self.ids.get(word, 0) for word in text.lower().split()][:40]

    def __call__(self, samples):
        rows = [self.encode(text) for text, _ in samples]
        rows = [row + [0] * (40 - len(row)) for row in rows]
        return torch.tensor(rows), torch.tensor([label for _, label in samples])
