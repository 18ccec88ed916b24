"""Mean teacher: a student follows labels and the running average of itself."""

import argparse
import copy

import torch
import torch.nn.functional as F
from torch import nn


def make_model(depth=40, width=32):
    layers = [nn.Linear(24, width)]
    for _ in range(depth):
        layers += [nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width)]
    return nn.Sequential(*layers, nn.Linear(width, 5))


class MeanTeacher:
    def __init__(self, student, decay=0.99):
        self.decay = decay
        self.student = student
        self.teacher = copy.deepcopy(student).requires_grad_(False)

    def update(self):
        student, averaged = self.student.state_dict(), {}
        for name, value in self.teacher.state_dict().items():
            new = student[name].clone()
            averaged[name] = self.decay * value + (1 - self.decay) * new if new.is_floating_point() else new
        self.teacher.load_state_dict(averaged)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    labels = torch.randint(0, 5, (4000,))
    x = torch.randn(5, 24)[labels] + 0.7 * torch.randn(4000, 24)
    student = make_model(depth=10)
    mean = MeanTeacher(student)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05, foreach=True)
    for step in range(1, args.steps + 1):
        pick = torch.randint(0, len(x), (32,))
        out = student(x[pick])
        with torch.no_grad():
            soft = mean.teacher(x[pick]).softmax(-1)
        loss = F.cross_entropy(out, labels[pick]) + 0.1 * F.mse_loss(out.softmax(-1), soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean.update()
        if step == 1 or step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
