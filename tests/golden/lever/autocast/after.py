import torch


def train(model, optimizer, loader):
    for images, labels in loader:
        with torch.autocast(next(model.parameters()).device.type, dtype=torch.bfloat16):
            logits = model(images).float()
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
