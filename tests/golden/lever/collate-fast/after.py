import numpy
import torch


def collate(samples):
    images = [image for image, _ in samples]
    labels = [label for _, label in samples]
    return torch.from_numpy(numpy.stack(images)), torch.tensor(labels)
