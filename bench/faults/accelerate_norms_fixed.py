"""Image patches with Accelerate; gradient health is checked after each backward."""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Deep(nn.Module):
    def __init__(self, depth=24, width=48):
        super().__init__()
        self.stem = nn.Linear(108, width)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)) for _ in range(depth))
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = x + 0.3 * torch.relu(layer(x))
        return self.head(x)


def check_gradients(model):
    report = {}
    for name, parameter in model.named_parameters():
        grad = parameter.grad
        sorted_values = grad.abs().flatten().sort().values
        report[name] = {
            "median": sorted_values[len(sorted_values) // 2].item(),
            "dead": (grad == 0).float().mean().item(),
            "finite": bool(torch.isfinite(grad).all()),
        }
    return report


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    labels = torch.randint(0, 8, (4096,))
    patches = torch.randn(8, 108)[labels] + 1.2 * torch.randn(4096, 108)
    loader = DataLoader(TensorDataset(patches, labels), batch_size=64, shuffle=True, drop_last=True)
    accelerator = Accelerator(cpu=True)
    model = Deep()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    step = 0
    while step < args.steps:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            if not torch.isfinite(torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])):
                continue
            optimizer.step()
            step += 1
            if step == 1 or step % 20 == 0:
                report = check_gradients(model)
                dead = max(row["dead"] for row in report.values())
                accelerator.print(f"step {step} loss {loss.item():.4f} dead {dead:.2f}", flush=True)
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()
