import torch


def collate(samples):
    images = [image for image, _ in samples]
    labels = [label for _, label in samples]
    return torch.tensor(images), torch.tensor(labels)
