"""A model is followed to the one place where it is surely made; elsewhere the edit is told in words."""

from __future__ import annotations

import textwrap

import pytest

from hotlap.patch.patch import Patched, Wanted, patch_file
from hotlap.records.edits import Edit

pytest.importorskip("libcst")


def compiled(source: str, mark: str) -> Patched:
    """``model.compile()`` for what is called on the first line that holds ``mark``."""
    source = textwrap.dedent(source)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if mark in text)
    edit = Edit("insert_after", "s.py", line, target="model", code="{module}.compile()")
    return patch_file("s.py", source.encode(), [Wanted(edit, "a-lever")])


BRANCH = """
def train(model, x):
    model(x).sum().backward()

if args.mode == "train":
    model = Net()
    train(model, x)
else:
    test(args.path)
"""


def test_a_branch_that_trains_gets_it_inside() -> None:
    assert "    model = Net()\n    model.compile()\n    train(" in compiled(BRANCH, "model(x)").after.decode()


def test_a_branch_that_only_makes_it_gets_it_behind() -> None:
    source = (
        BRANCH.replace("    train(model, x)\n", "").replace("test(args.path)", "model = Small()") + "train(model, x)\n"
    )
    assert "    model = Small()\nmodel.compile()\ntrain(" in compiled(source, "model(x)").after.decode()


def test_an_attribute_is_looked_for_in_its_own_class() -> None:
    source = """
    class Trainer:
        def __init__(self):
            self.model = Net()
        def step(self, x):
            self.model(x).sum().backward()
        def close(self):
            self.model = None
    class Exporter:
        def __init__(self, path):
            self.model = torch.jit.load(path)
    """
    done = compiled(source, "self.model(x)").after.decode()
    assert "        self.model = Net()\n        self.model.compile()\n" in done and done.count("compile") == 1


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("""
         try:
             model = Net(fast=True)
         except ImportError:
             model = Net()
         model(x).sum().backward()
         """, "in a `try`"),
        ("model = build()\nfor seed in range(3):\n    model, opt = setup(seed)\n    model(x).sum().backward()\n",
         "together with others"),
        ("for model in models:\n    model(x).sum().backward()\n", "more than once|not seen"),
        ("def fit(model):\n    model(x).sum().backward()\nfit(teacher)\nfit(student)\n", "several models"),
        ("out = model(scale(x))\n", "which of model and scale"),
    ],
)  # fmt: skip
def test_what_is_not_sure_is_told(source: str, why: str) -> None:
    done = compiled(source, "model(")
    assert done.before == done.after and any(w in done.by_hand[0].text for w in why.split("|"))


def test_a_distribution_made_of_a_model_is_not_the_model() -> None:
    source = "policy = Policy()\nfor s in states:\n    dist = Categorical(logits=policy(s))\npolicy.train()\n"
    assert "policy = Policy()\npolicy.compile()\n" in compiled(source, "Categorical(").after.decode()
