"""A training that gets slower in the middle of its run, in one of several ways, or stays as it is.

`python slow.py KIND SECONDS CHANGE`: trains for so many seconds; from second CHANGE on the fault KIND is there (one
that grows begins then). Prints the step at which it began. `steady` and `steady-validation` have none.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

WIDTH, BATCH, LENGTH = 256, 32, 24
BLOB = 1 << 22
PAGE = 4096
HELD_PAGES = (3 << 29) // PAGE
"""What `swap` holds from the change on: half as much again as all the memory that its run may use."""


class Samples(Dataset):
    """Sequences of numbers; `storage` makes each batch read a file past the page cache."""

    def __init__(self, switch: "Switch", folder: Path) -> None:
        self.switch, self.file = switch, folder / "samples.bin"
        if switch.kind == "storage":
            with open(self.file, "wb") as file:
                file.write(os.urandom(BLOB) * 16)
                file.flush()
                os.fsync(file.fileno())

    def __len__(self) -> int:
        return BATCH * 64

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.switch.kind == "storage" and self.switch.on:
            read_uncached(self.file, index % 16)
        if self.switch.kind == "augment" and self.switch.on:
            for _ in range(30):
                np.sort(np.random.rand(2000))
        return torch.full((LENGTH, WIDTH), index / len(self))


class Stream(IterableDataset):
    """`worker`: samples that each worker waits for; from the change on the second worker's part of the data is over."""

    def __init__(self, switch: "Switch") -> None:
        self.switch = switch

    def __iter__(self):
        while get_worker_info().id == 0 or not self.switch.due():
            time.sleep(0.005)
            yield torch.zeros(LENGTH, WIDTH)


def read_uncached(name: Path, part: int) -> int:
    with open(name, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(part * BLOB)
        return len(file.read(BLOB // 4))


class Switch:
    """Whether the fault has begun."""

    def __init__(self, kind: str, change_s: float) -> None:
        self.kind, self.change_s = kind, change_s
        self.begun = time.monotonic()
        self.on = False
        self.helpers: list[subprocess.Popen] = []

    def due(self) -> bool:
        return time.monotonic() - self.begun >= self.change_s

    def look(self, step: int) -> None:
        if self.on or not self.due():
            return
        self.on = True
        print(f"change at step {step}", flush=True)
        if self.kind == "neighbour":
            busy = "while True: pass"
            self.helpers = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(2 * (os.cpu_count() or 1))]
        if self.kind == "throttled":
            self.helpers = [subprocess.Popen([sys.executable, "-c", THROTTLE, str(os.getpid())])]

    def over(self) -> None:
        """Nobody is left behind."""
        for helper in self.helpers:
            helper.kill()
            helper.wait()


THROTTLE = f"""
import os, sys, time
while True:
    for number, pause in (({int(signal.SIGSTOP)}, 0.003), ({int(signal.SIGCONT)}, 0.005)):
        os.kill(int(sys.argv[1]), number)
        time.sleep(pause)
"""
"""Holds a process back as a hot processor does: it runs for five milliseconds and stands for three."""


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(),
                                                                  nn.Linear(2 * WIDTH, WIDTH))])  # fmt: skip
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).mean(1))


def validate(model: nn.Module, batches: list[torch.Tensor]) -> float:
    model.eval()
    with torch.no_grad():
        total = sum(model(batch).mean().item() for batch in batches)
    model.train()
    return total


def batches_for_ever(loader: DataLoader):
    while True:
        yield from loader


def grown(inputs: torch.Tensor, switch: Switch, since: int) -> torch.Tensor:
    """`padding`: sequences are padded ever longer."""
    if switch.kind == "padding" and switch.on:
        longer = min(4 * LENGTH, LENGTH + since // 8)
        return F.pad(inputs, (0, 0, 0, longer - LENGTH))
    return inputs


class Faults:
    """What is done to each step, by kind. Before the change: nothing."""

    def __init__(self, switch: Switch, model: Net, folder: Path) -> None:
        self.switch, self.model, self.log = switch, model, folder / "log.json"
        self.losses: list[float] = []
        self.held = [[i] for i in range(200_000 if switch.kind == "collections" else 0)]
        self.memory = torch.zeros(BATCH, WIDTH)
        self.pages: np.ndarray | None = None
        self.held_out = [torch.randn(BATCH, LENGTH, WIDTH)]

    def inputs(self, x: torch.Tensor, since: int) -> torch.Tensor:
        if self.switch.on and self.switch.kind == "recompilation":
            torch._dynamo.reset()
        return grown(x, self.switch, since)

    def loss(self, loss: torch.Tensor) -> torch.Tensor:
        if self.switch.on and self.switch.kind == "leak":
            self.memory = self.memory * 0.99 + self.model.body[0].weight[:BATCH] * 1e-3
            return loss + self.memory.mean()
        return loss

    def after(self, step: int, loss: float) -> None:
        kind, on = self.switch.kind, self.switch.on
        self.losses.append(loss)
        if on and kind == "history":
            self.losses += [loss] * 1000
            float(np.mean(self.losses))
        if on and kind == "collections":
            gc.collect()
        if on and kind == "swap":
            if self.pages is None:
                self.pages = np.ones((HELD_PAGES, PAGE), dtype=np.uint8)
            self.pages[np.random.randint(0, HELD_PAGES, 400), 0] += 1
        if on and kind == "logging":
            self.losses += [loss] * 40
            with open(self.log, "w") as file:
                json.dump(self.losses, file)
        if kind in ("validation", "steady-validation") and step % 25 == 24:
            if on and kind == "validation":
                self.held_out += [torch.randn(BATCH, LENGTH, WIDTH) for _ in range(4)]
            validate(self.model, self.held_out)


def train(switch: Switch, seconds: float, folder: Path) -> None:
    if switch.kind == "worker":
        loader = DataLoader(Stream(switch), BATCH, num_workers=2, persistent_workers=True)
    else:
        loader = DataLoader(Samples(switch, folder), BATCH, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    faults = Faults(switch, model, folder)
    called = torch.compile(model, backend="eager") if switch.kind == "recompilation" else model
    begun, changed = time.monotonic(), 0
    for step, inputs in enumerate(batches_for_ever(loader)):
        if time.monotonic() - begun > seconds:
            break
        if not switch.on:
            switch.look(step)
            changed = step
        out = called(faults.inputs(inputs, step - changed))
        loss = faults.loss(F.cross_entropy(out, torch.zeros(len(out), dtype=torch.long)))
        loss.backward(retain_graph=switch.kind == "leak")
        optimizer.step()
        optimizer.zero_grad()
        faults.after(step, loss.item())


def main() -> None:
    kind, seconds, change_s = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    switch = Switch(kind, change_s)
    try:
        with tempfile.TemporaryDirectory() as folder:
            train(switch, seconds, Path(folder))
    finally:
        switch.over()


if __name__ == "__main__":
    main()
