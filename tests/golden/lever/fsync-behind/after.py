import os
import time

import torch


def train(model, optimizer, loader, log):
    forced_s = 0.0
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        log.write(f"{loss.item()}\n")
        log.flush()
        if time.monotonic() - forced_s > 1.0:
            forced_s = time.monotonic()
            os.fsync(log.fileno())
