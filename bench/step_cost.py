"""What the probes add to one step, measured in one process: the same loop with the probes on and off in turn.

    python bench/step_cost.py [--blocks 60] [--width 512]

Blocks of 100 steps alternate, so that a neighbour on the machine hits both. Writing the rows is part of it: each
watched block ends with a flush. Prints the median difference per step, with the range of its bootstrap, last.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hotlap.inject.on_import import on_import
from hotlap.probe.hook_points import HookPoints
from hotlap.probe.undo import ABSENT, Undo
from hotlap.probe.watch import Watch, install
from hotlap.records.call import Call

__all__ = ["bootstrap", "main", "measure"]

BLOCK = 100
"""Steps per block, which is one epoch."""


class Switch(Undo):
    """An undo stack whose replacements can be switched off and on again."""

    def __init__(self) -> None:
        super().__init__()
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._hooks: list[tuple[Any, dict[int, Any]]] = []

    def replace(self, owner: Any, name: str, new: Any) -> Any:
        """As in the class above, and remembered."""
        self._replaced.append((owner, name, vars(owner).get(name, ABSENT), new))
        return super().replace(owner, name, new)

    def off(self) -> None:
        """Take all replacements and the optimizer hooks away."""
        for owner, name, old, _ in reversed(self._replaced):
            delattr(owner, name) if old is ABSENT else setattr(owner, name, old)
        module = sys.modules["torch.optim.optimizer"]
        for hooks in (module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks):
            self._hooks.append((hooks, dict(hooks)))
            hooks.clear()

    def on(self) -> None:
        """Put them back."""
        for owner, name, _, new in self._replaced:
            setattr(owner, name, new)
        while self._hooks:
            hooks, found = self._hooks.pop()
            hooks.update(found)


def _loop(width: int, batch: int, sink: Any) -> Any:
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    lossf, opt = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.01)
    n = BLOCK * batch
    data = DataLoader(TensorDataset(torch.randn(n, 64), torch.randint(0, 10, (n,))), batch)

    def block() -> None:
        for x, y in data:
            opt.zero_grad()
            loss = lossf(model(x), y)
            loss.backward()
            opt.step()
            print(loss.item(), file=sink)

    return block


def measure(blocks: int, width: int, batch: int, hz: float = 100.0) -> tuple[list[float], list[float]]:
    """Seconds per step of each block, bare and watched."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    undo = Switch()
    bare: list[float] = []
    watched: list[float] = []
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as sink:
        watch: Watch = install(Call(folder, flush_s=1e6, stack_hz=hz), HookPoints(), undo, on_import)
        run = _loop(width, batch, sink)
        for _ in range(3):
            run()
        for k in range(2 * blocks):
            is_on = k % 4 in (0, 3)
            if not is_on:
                watch.stacks.disarm()
                undo.off()
            begun = time.perf_counter()
            run()
            if is_on:
                watch.flush()
            (watched if is_on else bare).append((time.perf_counter() - begun) / BLOCK)
            if not is_on:
                undo.on()
                watch.stacks.arm()
        watch.close()
        undo.undo_all()
    return bare, watched


def bootstrap(differences: list[float]) -> tuple[float, float, float]:
    """Median, and the 2.5th and 97.5th percentile of its bootstrap."""
    rng = random.Random(0)
    medians = sorted(statistics.median(rng.choices(differences, k=len(differences))) for _ in range(1000))
    return statistics.median(differences), medians[24], medians[975]


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=60, help="blocks of 100 steps, of each kind")
    parser.add_argument("--width", type=int, default=64, help="width of the model (512: a step of about 2 ms)")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--hz", type=float, default=100.0, help="stack samples per second")
    args = parser.parse_args()
    bare, watched = measure(args.blocks, args.width, args.batch, args.hz)
    middle, low, high = bootstrap([w - b for b, w in zip(bare, watched, strict=True)])
    print(f"bare step {statistics.median(bare) * 1e6:.1f} us; fastest block {min(bare) * 1e6:.1f} us")
    print(f"watching adds {middle * 1e6:.1f} us per step [{low * 1e6:.1f}, {high * 1e6:.1f}]; "
          f"fastest blocks {(min(watched) - min(bare)) * 1e6:.1f} us")  # fmt: skip


if __name__ == "__main__":
    main()
