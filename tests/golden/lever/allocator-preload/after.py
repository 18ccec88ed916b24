# started as: LD_PRELOAD=/usr/lib/libtcmalloc.so.4 python train.py
import torch


def train(model, images, labels):
    torch.nn.functional.cross_entropy(model(images), labels).backward()
