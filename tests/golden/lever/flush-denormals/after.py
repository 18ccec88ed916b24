import torch

torch.set_flush_denormal(True)


def train(model, images, labels):
    torch.nn.functional.cross_entropy(model(images), labels).backward()
