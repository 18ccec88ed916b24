"""Which calls are taken for the model's, what goes into their ``with``, and whose results are cast."""

from __future__ import annotations

import textwrap

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")
CAST = "{call}.float()"
WITH = "with torch.autocast('cpu'):"


def apply(source: str, *edits: Edit) -> Patched:
    return patch_file("s.py", textwrap.dedent(source).encode(), [Wanted(e, "a-lever") for e in edits])


def text(done: Patched) -> str:
    return done.after.decode()


def test_the_criterion_stays_outside_of_autocast() -> None:
    source = """\
    import torch
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in loader:
        # the step
        loss = criterion(model(x), y); loss.backward()
        loss = criterion(model(x), y)
    """
    wrap = Edit("wrap_with", "s.py", 6, target="forward", code=WITH)
    cast = Edit("replace_call", "s.py", 6, target="forward", code=CAST)
    done = text(apply(source, wrap, cast))
    assert "        output = model(x).float()\n    loss = criterion(output, y)\n" in done
    assert done.count("autocast") == 1


def test_every_call_of_the_model_and_nothing_twice() -> None:
    source = """\
    import torch
    for x, y in loader:
        loss = head(model(x), y)
    def evaluate(model):
        return model(x).argmax(1)
    n = [*model.parameters(), *head.parameters()]
    """
    wrap = Edit("wrap_with", "s.py", 3, target="forwards", code=WITH)
    cast = Edit("replace_call", "s.py", 3, target="forwards", code=CAST)
    done = text(apply(source, wrap, cast, wrap, cast))
    assert "        output = model(x).float()\n    loss = head(output, y)\n" in done
    assert "        return model(x).float().argmax(1)\n" in done
    assert done.count("autocast") == 2


@pytest.mark.parametrize(("step", "inside"), [
    ("e = model(x)\nloss, hits = head(e, y)\nloss.backward()", "e = model(x).float()"),
    ("e = model(x)\nz = head(e)\nz.sum().backward()", "z = head(e).float()"),
    ("loss = head(x, y)\nloss.backward()\ne = model(x)", "loss = head(x, y).float()"),
])  # fmt: skip
def test_only_what_makes_a_loss_of_another_model_s_output_stays_outside(step: str, inside: str) -> None:
    source = f"import torch\n{step}\nn = [*model.parameters(), *head.parameters()]\n"
    lines = [n for n, line in enumerate(source.splitlines(), 1) if "model(x)" in line or "head(" in line]
    wanted = [Wanted(Edit("wrap_with", "s.py", n, target="forwards", code=WITH), "a-lever", move=n) for n in lines]
    wanted += [Wanted(Edit("replace_call", "s.py", n, target="forwards", code=CAST), "a-lever", move=n) for n in lines]
    done = text(patch_file("s.py", source.encode(), wanted))
    assert f"    {inside}\n" in done and "    loss, hits" not in done and "float(), y).float()" not in done


def test_an_output_that_is_no_tensor_is_not_cast() -> None:
    source = "import torch\nout = model(x)\nout.loss.backward()\n"
    done = apply(source, Edit("replace_call", "s.py", 2, target="forward", code=CAST))
    assert done.before == done.after and "no plain tensor" in done.by_hand[0].text


@pytest.mark.parametrize("use", [
    "loss = out[0]", "logits, aux = out", "total = sum(out[k] for k in out)", "pairs = list(zip(out, y))",
    "for part in out: part.sum()", "out.logits.sum()",
])  # fmt: skip
def test_an_output_with_parts_is_not_cast(use: str) -> None:
    done = apply(f"import torch\nout = model(x)\n{use}\n", Edit("replace_call", "s.py", 2, target="forward", code=CAST))
    assert done.before == done.after and "no plain tensor" in done.by_hand[0].text


@pytest.mark.parametrize(("call", "uses", "cast"), [
    ("model(x)", "y = predict(x).argmax(1)", True), ("model(x)", "y, z = predict(x)", False), ("model(x)", "", False),
    ("model(**x)", "y = predict(x).argmax(1)", False),
])  # fmt: skip
def test_what_a_function_hands_on_is_cast_where_its_callers_take_a_tensor(call: str, uses: str, cast: bool) -> None:
    source = f"import torch\ndef predict(x):\n    return {call}\n{uses}\n"
    done = text(apply(source, Edit("replace_call", "s.py", 3, target="forward", code=CAST)))
    assert (f"return {call}.float()" in done) == cast


def test_two_models_on_a_line_stay_in_one_with() -> None:
    source = "import torch\nloss = bce(d(real), a) + bce(d(g(z).detach()), b)\nn = [d.parameters(), g.parameters()]\n"
    done = text(apply(source, Edit("wrap_with", "s.py", 2, target="forwards", code=WITH)))
    assert f"{WITH}\n    loss = bce(d(real), a) + bce(d(g(z).detach()), b)\n" in done
