import random
from typing import Any

import torch


def flip_some(batch: Any, share: float, dimension: int) -> Any:
    """The batch with each sample mirrored along ``dimension``, or not, by a draw of its own."""
    chosen = torch.rand(len(batch), device=batch.device) < share
    return torch.where(chosen.view(-1, *[1] * (batch.dim() - 1)), batch.flip(dimension), batch)


class Faces(torch.utils.data.Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index].float()
        return image, self.labels[index]


def train(model, optimizer, images, labels):
    for batch, wanted in torch.utils.data.DataLoader(Faces(images, labels), 64, shuffle=True):
        batch = flip_some(batch, 0.5, -1)
        loss = torch.nn.functional.cross_entropy(model(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
