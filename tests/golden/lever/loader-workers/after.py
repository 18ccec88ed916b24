import torch
from torch.utils.data import DataLoader


def train(model, optimizer, dataset):
    torch.set_num_threads(1)
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True, prefetch_factor=4)
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
