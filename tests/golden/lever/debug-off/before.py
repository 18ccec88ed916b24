import torch

torch.autograd.set_detect_anomaly(True)


def train(model, images, labels):
    torch.nn.functional.cross_entropy(model(images), labels).backward()
