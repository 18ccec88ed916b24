"""A tiny single-shot detector on synthetic scenes, validated by average precision."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

SIZE, CELLS = 64, 8


def scenes(count, seed):
    generator = torch.Generator().manual_seed(seed)
    images = 0.1 * torch.randn(count, 1, SIZE, SIZE, generator=generator)
    corners = torch.randint(2, SIZE - 22, (count, 2), generator=generator)
    sides = torch.randint(8, 20, (count, 2), generator=generator)
    for image, (x, y), (w, h) in zip(images, corners.tolist(), sides.tolist(), strict=True):
        image[0, y : y + h, x : x + w] += 1.0
    return images, torch.cat([corners + sides / 2, sides.float()], 1)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inside = [], 1
        for outside in (16, 32, 48):
            layers += [nn.Conv2d(inside, outside, 3, 2, 1), nn.BatchNorm2d(outside), nn.ReLU()]
            inside = outside
        self.body = nn.Sequential(*layers)
        self.head = nn.Conv2d(inside, 5, 1)

    def forward(self, images):
        return self.head(self.body(images)).flatten(2).transpose(1, 2)


def detection_loss(out, boxes):
    cell = (boxes[:, :2] // (SIZE // CELLS)).long()
    index = cell[:, 1] * CELLS + cell[:, 0]
    rows = torch.arange(len(boxes))
    target = torch.zeros(out.shape[:2]).index_put((rows, index), torch.tensor(1.0))
    chosen = out[rows, index, 1:]
    return F.binary_cross_entropy_with_logits(out[..., 0], target) * 10 + F.smooth_l1_loss(chosen, boxes / SIZE)


def iou(a, b):
    ax0, ay0, ax1, ay1 = a[0] - a[2] / 2, a[1] - a[3] / 2, a[0] + a[2] / 2, a[1] + a[3] / 2
    bx0, by0, bx1, by1 = b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2
    inter = max(0.0, min(ax1, bx1) - max(ax0, bx0)) * max(0.0, min(ay1, by1) - max(ay0, by0))
    return inter / (a[2] * a[3] + b[2] * b[3] - inter + 1e-9)


@torch.no_grad()
def average_precision(model, images, boxes):
    model.eval()
    rows = []
    for image, box in zip(images.split(16), boxes.split(16), strict=True):
        for cells, truth in zip(model(image), box.tolist(), strict=True):
            for row in cells[cells[:, 0].topk(5).indices].tolist():
                rows.append((row[0], iou([v * SIZE for v in row[1:]], truth)))
    model.train()
    rows.sort(reverse=True)
    hits, area = 0, 0.0
    for rank, (_, overlap) in enumerate(rows, 1):
        if overlap > 0.5:
            hits += 1
            area += hits / rank
    return area / len(boxes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--val-every", type=int, default=100)
    args = parser.parse_args()
    torch.manual_seed(0)
    images, boxes = scenes(1024, 0)
    held_out = scenes(512, 1)
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(images), (24,))
        loss = detection_loss(model(images[pick]), boxes[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % args.val_every == 0:
            precision = average_precision(model, *held_out)
            print(f"step {step} AP50 {precision:.3f}", flush=True)


if __name__ == "__main__":
    main()
