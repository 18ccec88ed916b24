# started as: PYTORCH_ALLOC_CONF=expandable_segments:True python train.py
import torch


def train(model, images, labels):
    torch.nn.functional.cross_entropy(model(images), labels).backward()
