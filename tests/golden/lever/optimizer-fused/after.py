import torch


def build(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    return optimizer
