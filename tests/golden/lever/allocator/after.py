# started as: MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2147483647 MALLOC_TOP_PAD_=67108864 python train.py
import torch


def train(model, images, labels):
    torch.nn.functional.cross_entropy(model(images), labels).backward()
