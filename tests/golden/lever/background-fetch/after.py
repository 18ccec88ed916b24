import queue
import threading

import torch
from torch.utils.data import DataLoader


def fetch_ahead(loader, depth):
    ready, end = queue.Queue(depth), object()

    def run():
        for batch in loader:
            ready.put(batch)
        ready.put(end)

    threading.Thread(target=run, daemon=True).start()
    while (batch := ready.get()) is not end:
        yield batch


def train(model, optimizer, dataset):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    for images, labels in fetch_ahead(loader, depth=2):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
