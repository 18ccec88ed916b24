import torch
from torch.utils.data import DataLoader


def train(model, optimizer, dataset, device):
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
