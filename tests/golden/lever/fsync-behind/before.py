import os

import torch


def train(model, optimizer, loader, log):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        log.write(f"{loss.item()}\n")
        log.flush()
        os.fsync(log.fileno())
