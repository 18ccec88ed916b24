import torch

from hotlap.pack import Image, Loader


def train(model, optimizer, pack):
    for batch in Loader(pack, 64, {"image": Image(crop=(112, 112)), "label": None}):
        loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
