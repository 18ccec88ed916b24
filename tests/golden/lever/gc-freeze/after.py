import gc

import torch


def train(model, optimizer, loader):
    gc.collect()
    gc.freeze()
    gc.set_threshold(50000, 20, 20)
    for images, labels in loader:
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
