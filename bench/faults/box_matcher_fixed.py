"""Box regression with greedy matching of predictions and targets, in the manner of DETR."""

import argparse

import torch
from torch import nn


def corners(boxes):
    centre, size = boxes[..., :2], boxes[..., 2:]
    return torch.cat([centre - size / 2, centre + size / 2], -1)


def match(predicted, target):
    a, b = corners(predicted.detach())[:, :, None], corners(target)[:, None]
    overlap = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    areas = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1)
    iou = overlap / (areas - overlap).clamp(min=1e-9)
    index = torch.zeros(target.shape[:2], dtype=torch.long)
    rows = torch.arange(len(target))
    for _ in range(target.shape[1]):
        best = iou.flatten(1).argmax(1)
        i, j = best // target.shape[1], best % target.shape[1]
        index[rows, j] = i
        iou[rows, i] = -1
        iou[rows, :, j] = -1
    return index


class BoxNet(nn.Module):
    def __init__(self, queries=24):
        super().__init__()
        self.queries = queries
        self.body = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.boxes = nn.Linear(256, queries * 4)

    def forward(self, x):
        return self.boxes(self.body(x)).view(-1, self.queries, 4).sigmoid()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    boxes = 0.2 + 0.5 * torch.rand(2000, 8, 4)
    boxes = boxes.sort(1).values
    features = boxes.flatten(1) + 0.02 * torch.randn(2000, 32)
    model = BoxNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(boxes), (24,))
        out = model(features[pick])
        index = match(out, boxes[pick])
        loss = nn.functional.l1_loss(out.gather(1, index.unsqueeze(-1).expand(-1, -1, 4)), boxes[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
