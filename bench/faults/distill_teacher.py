"""Distillation of a wide network into a narrow one."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


def mlp(width, depth):
    layers = [nn.Linear(128, width), nn.GELU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(width, 20))


class Distiller(nn.Module):
    def __init__(self, temperature=2.0):
        super().__init__()
        self.temperature = temperature
        self.teacher = mlp(1024, 4)
        self.student = mlp(96, 2)

    def forward(self, x):
        return self.student(x), self.teacher(x)

    def loss(self, student, teacher, labels):
        t = self.temperature
        soft = F.kl_div(F.log_softmax(student / t, -1), F.softmax(teacher / t, -1), reduction="batchmean")
        return F.cross_entropy(student, labels) + 0.5 * t * t * soft


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(71)
    distiller = Distiller()
    labels = torch.randint(0, 20, (3000,))
    x = torch.randn(20, 128)[labels] + torch.randn(3000, 128)
    optimizer = torch.optim.AdamW(distiller.student.parameters(), lr=args.lr)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(x), (96,))
        student, teacher = distiller(x[pick])
        loss = distiller.loss(student, teacher, labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
