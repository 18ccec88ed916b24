"""Box regression with greedy matching of predictions and targets, in the manner of DETR."""

import argparse

import torch
from torch import nn


def box_iou(a, b):
    x0, y0 = max(a[0], b[0]), max(a[1], b[1])
    x1, y1 = min(a[2], b[2]), min(a[3], b[3])
    inter = max(0.0, x1 - x0) * max(0.0, y1 - y0)
    area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter
    return inter / area if area > 0 else 0.0


def corners(boxes):
    centre, size = boxes[..., :2], boxes[..., 2:]
    return torch.cat([centre - size / 2, centre + size / 2], -1)


def match(predicted, target):
    predicted, target = corners(predicted.detach()).tolist(), corners(target).tolist()
    pairs = []
    for boxes, truths in zip(predicted, target, strict=True):
        scored = [(box_iou(box, truth), i, j) for i, box in enumerate(boxes) for j, truth in enumerate(truths)]
        scored.sort(reverse=True)
        rows, columns, taken = set(), set(), []
        for _, i, j in scored:
            if i not in rows and j not in columns:
                rows.add(i)
                columns.add(j)
                taken.append((i, j))
        pairs.append(sorted(taken, key=lambda pair: pair[1]))
    return torch.tensor([[i for i, _ in row] for row in pairs])


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
