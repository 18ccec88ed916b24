import torch


def train(model, images, labels):
    torch.nn.functional.cross_entropy(model(images), labels).backward()
