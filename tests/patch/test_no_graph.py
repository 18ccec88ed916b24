"""``no_grad`` is written around calls that nothing trains through, and refused in words elsewhere."""

from __future__ import annotations

import textwrap

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")
NO_GRAD = "with torch.no_grad():"


def edited(source: str, mark: str, kind: str = "wrap_with") -> Patched:
    """The first line that holds ``mark`` gets the edit of a frozen network, or with ``decorate`` of a validation."""
    source = "import torch\n" + textwrap.dedent(source)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if mark in text)
    target, code = ("forward", NO_GRAD) if kind == "wrap_with" else ("validation", "@torch.no_grad()")
    return patch_file("s.py", source.encode(), [Wanted(Edit(kind, "s.py", line, target=target, code=code), "a-lever")])


def text(done: Patched) -> str:
    return done.after.decode()


DISTILLED = """
import F
opt = torch.optim.SGD(student.parameters(), 0.1)
teacher.eval()
for x, y in loader:
    s = student(x)
    LINE
    loss = kd.mean()
    loss.backward()
"""


def distilled(line: str) -> str:
    return DISTILLED.replace("LINE", line)


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("kd = F.kl_div(F.log_softmax(s, 1), F.softmax(teacher(x), 1))",
         "kd = F.kl_div(F.log_softmax(s, 1), F.softmax(output, 1))"),
        ("kd = s - teacher(x)", "kd = s - output"),
        ("kd = gamma * teacher(x).max(1)[0] - s", "kd = gamma * output.max(1)[0] - s"),
    ],
)  # fmt: skip
def test_the_teachers_call_alone_is_taken_in(line: str, rest: str) -> None:
    done = text(edited(distilled(line), "teacher(x)"))
    assert f"    {NO_GRAD}\n        output = teacher(x)\n    {rest}\n" in done


def test_a_chain_of_methods_stays_whole() -> None:
    done = text(edited(distilled("kd = teacher(x).softmax(1)"), "teacher(x)"))
    assert f"    {NO_GRAD}\n        kd = teacher(x).softmax(1)\n" in done


@pytest.mark.parametrize(
    ("source", "mark", "why"),
    [
        (distilled("kd = sum(F.mse(a, b) for a, b in zip(s, teacher(x)))"), "teacher(x)", "computes more"),
        (distilled("kd = F.mix(next(it), teacher(x))"), "teacher(x)", "computes more"),
        (distilled("kd = distance(student(x), teacher(x))"), "teacher(x)", "another model"),
        ("for block in self.blocks:\n    x = block(x)\n", "block(x)", "one network after the other"),
        ("outs = [net(x) for net in (student, teacher)]\n", "net(x)", "one network after the other"),
        ("""
         def features(net, x):
             out = net(x)
             return out
         a, b = features(teacher, x), features(student, x)
         """, "net(x)", "other networks too"),
        ("def features(net, x):\n    out = net(x)\n    return out\n", "net(x)", "is not seen"),
        ("opt = torch.optim.SGD([{'params': net.parameters()}], lr=1)\nout = net(x)\n", "net(x)",
         "the parameters of net"),
    ],
)  # fmt: skip
def test_what_may_be_trained_is_left_alone(source: str, mark: str, why: str) -> None:
    done = edited(source, mark)
    assert done.before == done.after and why in done.by_hand[0].text


def test_a_network_of_one_caller_is_taken_in() -> None:
    source = "def features(net, x):\n    out = net(x)\n    return out\na = features(teacher, x)\n"
    assert f"    {NO_GRAD}\n        out = net(x)\n" in text(edited(source, "net(x)"))


SHARED = """
def loss_of(model, batch):
    x, y = batch
    out = model(x)
    return criterion(out, y)

def train(model):
    for batch in train_loader:
        value = loss_of(model, batch)
        total = value / 2
        total.backward()

def evaluate(model):
    model.eval()
    return sum(loss_of(model, b).item() for b in val_loader)
"""


@pytest.mark.parametrize(
    ("source", "mark", "why"),
    [
        (SHARED, "model(x)", "training goes through loss_of"),
        (SHARED.replace("value = loss_of", "value = both") + "def both(m, b):\n    return loss_of(m, b)\n", "model(x)",
         "training goes through loss_of"),
        ("""
         def run_epoch(net, loader, optimizer=None):
             for x, y in loader:
                 out = net(x)
                 loss = criterion(out, y)
                 if optimizer is not None:
                     loss.backward()
                     optimizer.step()
         """, "net(x)", "training goes through the same line"),
        ("def predict(net, x):\n    out = net(x)\n    return out\n", "net(x)", "is not seen in this file"),
    ],
)  # fmt: skip
def test_a_validation_that_training_shares_is_left_alone(source: str, mark: str, why: str) -> None:
    done = edited(source, mark, "decorate")
    assert done.before == done.after and why in done.by_hand[0].text


def test_a_function_that_lends_its_optimizer_or_model_is_not_decorated() -> None:
    source = """
    from engine import pgd, update
    def main():
        for batch in train_loader:
            update(model, optimizer, batch)
        model.eval()
        for x, y in val_loader:
            out = model(x)
    def attacked():
        model.eval()
        for x, y in val_loader:
            x = pgd(model, x, y)
            hits = model(x)
    """
    done = text(edited(source, "out = model(x)", "decorate"))
    assert "@torch" not in done and f"            {NO_GRAD}\n            out" not in done
    assert f"        {NO_GRAD}\n            out = model(x)\n" in done
    attacked = text(edited(source, "hits = model(x)", "decorate"))
    assert "@torch" not in attacked and f"        {NO_GRAD}\n            hits = model(x)\n" in attacked


def test_a_validation_whose_result_is_only_watched_is_decorated() -> None:
    source = (
        SHARED.replace("value = loss_of(model, batch)", "value = criterion(model(batch), 0)")
        + """
for epoch in range(3):
    train(model)
    best = max(best, evaluate(model))
    scheduler.step(best)
"""
    )
    assert "@torch.no_grad()\ndef loss_of" in text(edited(source, "out = model(x)", "decorate"))
