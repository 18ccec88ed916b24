import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(network, optimizer, batches):
    model = DDP(network, gradient_as_bucket_view=True)
    for images, labels in batches:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
