"""The training that the GPU bench times: made-up data, a model by size, on ``cuda`` (or ``cpu``, to try it out).

    python bench/gpu/gpu_loop.py '{"steps": 600, "width": 256, "depth": 20, "batch": 64, "out": …}'

Writes seconds per step from step ``warm`` on, without what is before. With ``events`` it brackets its own phases with
CUDA events in every step, and writes what they say: the truth that the timeline is compared with. With ``gate`` it says
``ready`` before its first step, and takes a turn of ``steps`` for every line that it is then given, which it answers
with the turn's seconds per step; at the end of the lines it writes how many steps it took.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PHASES = ("h2d", "forward", "backward", "optimizer")
IN = 64


def model_of(width: int, depth: int) -> nn.Module:
    """So many hidden layers: many small ones are bound by their launches, few large ones by the device."""
    layers: list[nn.Module] = [nn.Linear(IN, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


class Marks:
    """Events of one step: begin and end of each phase, and the end of the step. None are made where nobody asks."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self.steps: list[dict[str, Any]] = []

    def begin(self) -> None:
        self.steps.append({})

    def mark(self, name: str) -> None:
        if self._wanted:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.steps[-1][name] = event

    def read(self) -> list[dict[str, float]]:
        """Seconds of each phase, and of the step from the end of the one before; after a synchronize."""
        found, before = [], None
        for step in self.steps if self._wanted else []:
            row = {p: step[f"{p} begins"].elapsed_time(step[f"{p} ends"]) / 1e3 for p in PHASES}
            if before is not None:
                row["step"] = before.elapsed_time(step["optimizer ends"]) / 1e3
            before = step["optimizer ends"]
            found.append(row)
        return found


def batches(asked: dict[str, Any]) -> Any:
    """Epoch after epoch."""
    count = asked["batch"] * 200
    data = TensorDataset(torch.randn(count, IN), torch.randint(0, 10, (count,)))
    loader = DataLoader(data, asked["batch"], shuffle=True)
    while True:
        yield from loader


class Training:
    """The loop, turn by turn."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._device = asked.get("device", "cuda")
        torch.manual_seed(0)
        self._model = model_of(asked["width"], asked["depth"]).to(self._device)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.001)
        self._batches = batches(asked)
        self.marks, self.steps = Marks(bool(asked.get("events"))), 0

    def wait(self) -> float:
        """Until the device has done all; the time."""
        if self._device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def turn(self, steps: int, warm: int) -> float:
        """Seconds per step after the ``warm`` ones. It waits twice: before the first of those, and after the last."""
        begun = 0.0
        for step, (x, y) in zip(range(steps), self._batches, strict=False):
            if step == warm:
                begun = self.wait()
            self._step(x, y)
        self.steps += steps
        return (self.wait() - begun) / (steps - warm)

    def _step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        marks = self.marks
        marks.begin()
        marks.mark("h2d begins")
        x, y = x.to(self._device), y.to(self._device)
        marks.mark("h2d ends")
        self._optimizer.zero_grad()
        marks.mark("forward begins")
        out = self._model(x)
        marks.mark("forward ends")
        loss = nn.functional.cross_entropy(out, y)
        marks.mark("backward begins")
        loss.backward()
        marks.mark("backward ends")
        marks.mark("optimizer begins")
        self._optimizer.step()
        marks.mark("optimizer ends")


def train(asked: dict[str, Any]) -> dict[str, Any]:
    """One turn, or as many as lines come in."""
    training = Training(asked)
    if not asked.get("gate"):
        return {"step_s": training.turn(asked["steps"], asked["warm"]), "events": training.marks.read()}
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(training.turn(asked["steps"], asked["warm"])), flush=True)
    return {"steps": training.steps}


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    Path(request["out"]).write_text(json.dumps(train(request)))
