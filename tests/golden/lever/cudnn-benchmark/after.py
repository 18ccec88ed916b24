import torch


def train(model, images, labels):
    torch.backends.cudnn.benchmark = True
    torch.nn.functional.cross_entropy(model(images), labels).backward()
