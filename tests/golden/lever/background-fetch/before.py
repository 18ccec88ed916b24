import torch
from torch.utils.data import DataLoader


def train(model, optimizer, dataset):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
