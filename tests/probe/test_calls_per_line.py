"""Calls of the user's lines in one step, counted in real small trainings."""

from __future__ import annotations

from typing import Any

import pytest

from hotlap.records.timeline import Timeline
from hotlap.trial.collect import annotate

TRAIN = """
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(12):
    x = torch.randn(4, 16, 8)
    loss = step(x)
    loss.backward(); opt.step(); opt.zero_grad()
"""
CELL = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__(); self.wx = nn.Linear(8, 8); self.wh = nn.Linear(8, 8)
    def forward(self, x, h):
        g = self.wx(x) + self.wh(h)
        return torch.tanh(g)
"""


def counted(timeline: Timeline | None) -> dict[str, float]:
    """Rounds by the text of the line."""
    assert timeline is not None
    annotate(timeline)
    (row,) = [row for row in timeline.setting if row.name == "step_calls"]
    found: dict[str, float] = {}
    for number, calls, rounds in row.value["lines"]:
        frame = timeline.frame[number]
        text = timeline.source[f"{frame.file}:{frame.line}"]
        assert calls >= rounds
        found[text] = max(rounds, found.get(text, 0.0))
    return found


def test_a_loop_around_a_cell(watched: Any) -> None:
    timeline, out = watched(
        CELL
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.cell = Cell()
    def forward(self, x):
        h = x.new_zeros(4, 8)
        for t in range(16):
            h = self.cell(x[:, t], h)
        return h
def step(x):
    return model(x).sum()
"""
        + TRAIN
        + "print(sys.gettrace(), sys.getprofile())"
    )
    lines = counted(timeline)
    assert out == "None None\n"
    assert lines["h = self.cell(x[:, t], h)"] == 16.0
    assert lines["g = self.wx(x) + self.wh(h)"] == 1.0, "two calls, in sixteen runs of the function"
    assert lines["return model(x).sum()"] == 1.0


def test_a_loop_around_forwards_and_a_criterion_without_parameters(watched: Any) -> None:
    timeline, _ = watched(
        CELL
        + """
class Criterion(nn.Module):
    def forward(self, h):
        total, seen = 0.0, 0
        for value in h.flatten().tolist():
            seen += value > 0
        for row in h:
            total = total + torch.abs(row).sum()
        return total
Net, criterion = Cell, Criterion()
def step(x):
    h = x.new_zeros(4, 8)
    for t in range(16):
        h = model(x[:, t], h)
    return criterion(h)
"""
        + TRAIN
    )
    lines = counted(timeline)
    assert "loss = step(x)" not in lines, "the forwards below it are none of its own"
    assert lines["h = model(x[:, t], h)"] == 16.0 and lines["return criterion(h)"] == 1.0
    assert lines["total = total + torch.abs(row).sum()"] == 4.0
    assert lines["seen += value > 0"] == 32.0, "a line that calls nothing"


@pytest.mark.parametrize("how", ["torch.stack([self.head(x[:, t]) for t in range(16)])",
                                 "sum(self.head(x[:, t]) for t in range(16))"])  # fmt: skip
def test_micro_batches_and_comprehensions(watched: Any, how: str) -> None:
    timeline, _ = watched(
        f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.head = nn.Linear(8, 8)
    def forward(self, x):
        return {how}
def step(x):
    for k in range(20):
        model(x).sum().backward()
    return model(x).sum()
"""
        + TRAIN
    )
    lines = counted(timeline)
    # Not exactly: a garbage collection that falls into the line calls the probe of collections from there.
    assert lines[f"return {how}"] in (16.0, 17.0)
    assert lines["model(x).sum().backward()"] == 1.0, "each backward ends a forward"


def test_a_call_that_comes_back_into_python_is_one(watched: Any) -> None:
    timeline, _ = watched(
        CELL
        + """
from torch.overrides import TorchFunctionMode
class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
class Net(Cell):
    def forward(self, x):
        total = 0.0
        for row in x.flatten(0, 1)[:4]:
            total = total + torch.abs(self.wx(row)).sum()
        return total
model = Net()
def step(x):
    with Mode():
        return model(x)
"""
        + TRAIN.replace("model = Net()\n", "")
    )
    assert counted(timeline)["total = total + torch.abs(self.wx(row)).sum()"] == 4.0
