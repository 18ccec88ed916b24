"""Only what is seen to be a tensor is cast: by its uses, or by the model's class."""

from __future__ import annotations

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")
IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nfrom other import build, Net, Loss\n"


def cast(source: str) -> Patched:
    text = IMPORTS + source
    line = next(n for n, code in enumerate(text.splitlines(), 1) if "model(x)" in code)
    edit = Edit("replace_call", "s.py", line, target="forward", code="{call}.float()")
    return patch_file("s.py", text.encode(), [Wanted(edit, "a-lever")])


@pytest.mark.parametrize(
    "use", ["loss = out.recon + out.kl", "m = out.mean", "s = out.sample()", "m = out.stats.max()"]
)
def test_an_attribute_that_tensors_do_not_have_is_a_part(use: str) -> None:
    done = cast(f"out = model(x)\n{use}\n")
    assert done.after == done.before and "no plain tensor" in done.by_hand[0].text


CRITERIA = [
    "criterion = build(args)\nout = model(x)\nloss = criterion(out, y)\n",
    "criterion = Loss()\nloss = criterion(model(x), y)\n",
    "model, criterion = build(args)\nout = model(x)\nloss = criterion(out, y)\n",
    "def train(model, criterion):\n    out = model(x)\n    loss = criterion(out, y)\n",
    "model = Net()\nout = model(x)\nloss = build(out, y)\nmeter.update(out.to(device))\n",
]


@pytest.mark.parametrize("source", CRITERIA)
def test_what_goes_to_a_function_of_another_file_is_left(source: str) -> None:
    done = cast(source)
    assert done.after == done.before and "does not show whether it is a tensor" in done.by_hand[0].text


@pytest.mark.parametrize(
    "more",
    [
        "hits = out.argmax(1)", "loss = F.mse_loss(out, y)", "loss = nn.functional.l1_loss(y, out)", "d = out - y",
        "part = out[:, 0]", "right = y.eq(out)",
        "class Net(nn.Module):\n    def forward(self, x):\n        return x * 2",
        "model = nn.Sequential(a, b).to(device)",
    ],
)  # fmt: skip
def test_one_use_that_only_tensors_have_is_enough(more: str) -> None:
    source = f"model = Net()\ncriterion = build(args)\nout = model(x)\nloss = criterion(out, y)\n{more}\n"
    assert b"model(x).float()" in cast(source).after


@pytest.mark.parametrize(
    "criterion",
    [
        "nn.CrossEntropyLoss()",
        "nn.CrossEntropyLoss().to(device)",
        "F.mse_loss",
        "nn.MSELoss() if a else nn.L1Loss()",
        "Own()",
    ],
)
def test_a_criterion_that_the_file_shows_takes_a_tensor(criterion: str) -> None:
    own = "class Own(nn.Module):\n    def forward(self, out, y):\n        return (out - y).square().mean()\n"
    made = f"{own}criterion = {criterion}\n"
    assert b"model(x).float()" in cast(f"{made}model = Net()\nout = model(x)\nloss = criterion(out, y)\n").after
    through = f"{made}def train(model, loss_fn):\n    loss = loss_fn(model(x), y)\ntrain(Net(), criterion)\n"
    assert b"model(x).float()" in cast(through).after


def test_a_function_of_the_file_that_takes_the_output_apart() -> None:
    source = "def loss_of(given, y):\n    return {}\nloss = loss_of(model(x), y)\n"
    assert cast(source.format("F.mse_loss(given['a'], y)")).written == []
    assert cast(source.format("F.mse_loss(given, y)")).written == ["a-lever"]
    rows = source.format("[pair(row) for row in given]").replace("loss_of(model(x), y)", "loss_of(out, y)")
    assert cast(f"out = model(x)\n{rows}").written == []
    assert cast(f"out = model(x)\n{rows}loss = out.gather(1, y)\n").written == ["a-lever"], "rows of a tensor"


def test_a_class_of_the_file_that_returns_parts() -> None:
    net = "class Own(nn.Module):\n    def forward(self, x):\n        out = {0}\n        return out\nmodel = Own()\n"
    assert cast(net.format("{'a': x}") + "loss = build(model(x))\n").written == []
    assert cast(net.format("x + 1") + "loss = build(model(x))\n").written == ["a-lever"]
