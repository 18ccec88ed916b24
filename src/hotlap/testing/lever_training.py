"""A tiny training with every sin that the levers treat, and one with nothing that a lever could change."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["bare_training", "full_training", "ranks_training"]


def full_training(folder: str, steps: int = 8) -> list[float]:
    """Train a small convolutional model on array files in ``folder`` (made when absent); the loss of each step.

    It reads files per sample, works out each label anew, takes samples out of a tensor one by one, has one loading
    process, pads its texts to one length, validates with gradients on, saves each fourth step, learns from a frozen
    teacher in fp32, checkpoints activations, computes a term in fp16 on the CPU, zeroes gradients in place, collects
    garbage and empties the cache by hand, forces its log to disk, and leaves anomaly detection on. CPU, seeded:
    without levers two calls give the same bits.
    """
    import gc

    import numpy
    import torch
    from torch import nn
    from torch.utils import checkpoint
    from torch.utils.data import DataLoader, TensorDataset

    _make_files(folder)
    was_anomaly = torch.is_anomaly_enabled()
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    teacher = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).requires_grad_(False).eval()
    dataset: Any = _Files(folder, numpy)
    loader: Any = DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=_collate)
    words = torch.arange(1, 13).repeat(16, 4) * (torch.arange(48) < 12)  # padded to one length
    scales = DataLoader(TensorDataset(torch.linspace(0.5, 1.5, 16), words, (words > 0).long()), batch_size=4)
    losses: list[float] = []
    loss: Any
    try:
        while len(losses) < steps:
            for (images, labels), (scale, tokens, mask) in zip(loader, scales, strict=True):
                logits = model(images)
                wanted = teacher(images)
                loss = checkpoint.checkpoint(nn.functional.cross_entropy, logits, labels, use_reentrant=False)
                loss = loss * scale.mean() * (tokens * mask).sum() / 1e3 + 0.1 * nn.functional.mse_loss(logits, wanted)
                with torch.autocast("cpu", dtype=torch.float16):
                    loss = loss + 1e-3 * (wanted @ wanted.T).float().mean()
                optimizer.zero_grad(set_to_none=False)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                torch.cuda.empty_cache()
                _log(os.path.join(folder, "log.txt"), losses[-1])
                if len(losses) % 4 == 0:
                    gc.collect()
                    _validate_and_save(model, images, os.path.join(folder, "model.pt"))
                if len(losses) == steps:
                    break
    finally:
        torch.set_anomaly_enabled(was_anomaly)
    return losses


def _log(path: str, loss: float) -> None:
    with open(path, "a", encoding="utf-8") as log:
        log.write(f"{loss}\n")
        log.flush()
        os.fsync(log.fileno())


def _validate_and_save(model: Any, images: Any, path: str) -> None:
    import torch

    model.eval()
    model(images).argmax(1)
    model.train()
    torch.save({"model": model.state_dict()}, path)
    saved = torch.load(path)["model"]
    if not all(torch.equal(saved[name], value) for name, value in model.state_dict().items()):
        raise AssertionError("a checkpoint does not hold the weights that were saved")


# A group's destructor joins its threads with the interpreter's lock held, and a thread that is just then letting go
# of the last gradients waits for that lock: one training in some three thousand hung for good. So groups are kept.
_groups_kept: list[Any] = []


def ranks_training(folder: str, steps: int = 4) -> list[float]:
    """Train under DistributedDataParallel in a group of one (gloo), which looks for unused parameters for nothing."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    store = os.path.join(folder, f"group-{len(os.listdir(folder))}")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    _groups_kept.append(dist.group.WORLD)
    try:
        model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)),
                                        find_unused_parameters=True)  # fmt: skip
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        losses = []
        for _ in range(steps):
            loss = (model(torch.randn(16, 6)) - 1.0).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses
    finally:
        dist.destroy_process_group()


def bare_training(steps: int = 4) -> list[float]:
    """A training by hand: tensors, no module, no loader, no optimizer object."""
    import torch

    torch.manual_seed(0)
    weight = torch.zeros(3, requires_grad=True)
    losses = []
    for _ in range(steps):
        loss = ((torch.randn(8, 3) @ weight - 1.0) ** 2).mean()
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight -= 0.1 * gradient
        losses.append(loss.item())
    return losses


def _make_files(folder: str) -> None:
    import numpy

    numbers = numpy.random.RandomState(0)
    for index in range(16):
        path = os.path.join(folder, f"{index}.npy")
        if not os.path.exists(path):
            numpy.save(path, numbers.rand(3, 10, 10).astype("float32"))
    light = os.path.join(folder, "light.npy")
    if not os.path.exists(light):
        numpy.save(light, numbers.rand(64, 3, 10, 10).astype("float32"))
        os.utime(light, (1e9, 1e9))  # written long before the training


def _collate(samples: list[Any]) -> tuple[Any, Any]:
    """Number by number, as many do."""
    import torch

    images, labels = zip(*samples, strict=True)
    return torch.tensor(list(images)), torch.tensor(labels)


class _Files:
    """16 array files, and one that is read whole each time; four labels; the same sample for an index each time."""

    def __init__(self, folder: str, numpy: Any) -> None:
        self._folder = folder
        self._numpy = numpy

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> tuple[Any, int]:
        array = self._numpy.load(os.path.join(self._folder, f"{index}.npy"))
        light = self._numpy.load(os.path.join(self._folder, "light.npy"))
        return array + light[index], self._label_of(f"kind {index % 4}")

    def _label_of(self, name: str) -> int:
        return int(name.split()[1])

    def __reduce__(self) -> tuple[Any, ...]:
        import numpy

        return _Files, (self._folder, numpy)
