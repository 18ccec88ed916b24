"""Linear probe on top of a pretrained convolutional body."""

import argparse

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inside = [], 3
        for outside in (24, 48, 96):
            layers += [nn.Conv2d(inside, outside, 3, 2, 1), nn.BatchNorm2d(outside), nn.ReLU()]
            layers += [nn.Conv2d(outside, outside, 3, 1, 1), nn.BatchNorm2d(outside), nn.ReLU()]
            inside = outside
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())

    def forward(self, x):
        return self.layers(x)


class Probe(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(384, classes)

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


def pretrained():
    torch.manual_seed(67)
    return Backbone().eval()


def images(count=480, classes=6):
    generator = torch.Generator().manual_seed(67)
    labels = torch.randint(0, classes, (count,), generator=generator)
    centres = torch.randn(classes, 3, 12, 12, generator=generator)
    big = nn.functional.interpolate(centres, size=48)
    return big[labels] + 0.5 * torch.randn(count, 3, 48, 48, generator=generator), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    model = Probe(pretrained(), 6)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=5e-2)
    x, y = images()
    torch.manual_seed(0)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(x), (24,))
        loss = nn.functional.cross_entropy(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
