"""What a script changes of the data set that a loader's workers have copies of."""

from __future__ import annotations

import ast
import textwrap

import pytest

from hotlap.records.changed_data import changed_data

LOOP = """\
class Scenes(Dataset):
    def set_epoch(self, epoch):
        self.epoch = epoch
    def grow(self):
        self.rows.append(1)
    def shown(self, x):
        return x * self.std
base = Scenes(args.root)
data = Subset(base, rows)
base.grow()
loader = DataLoader(data, 8, num_workers=2)
others = DataLoader(Scenes(args.test), 8)
for epoch in range(9):
    {0}
    for x, y in loader:
        loss = criterion(model(x), y)
        {1}
"""


def changed(source: str) -> tuple[str, int] | None:
    text = textwrap.dedent(source)
    line = next(n for n, code in enumerate(text.splitlines(), 1) if "DataLoader(" in code)
    return changed_data(ast.parse(text), line)


@pytest.mark.parametrize(
    "code",
    [
        "data.set_epoch(epoch)", "base.set_epoch(epoch)", "data.difficulty = epoch", "data.difficulty += 1",
        "loader.dataset.resample()", "loader.dataset.dataset.rows[0] = 1", "data.rows.append(epoch)", "base.grow()",
        "inner = loader.dataset; inner.set_epoch(epoch)", "setattr(data, 'epoch', epoch)", "reshuffle(data)",
        "del base.rows[0]", "a, data.low = (1, 2)",
    ],
)  # fmt: skip
def test_what_changes_the_data_between_epochs_is_named(code: str) -> None:
    found = changed(LOOP.format(code, "pass"))
    assert found is not None and found[1] == 14 and found[0] in code
    assert changed(LOOP.format("pass", code)) is not None, "the next epoch's workers would see it"


@pytest.mark.parametrize(
    "code",
    [
        "pass", "print(len(data), data.classes)", "others.dataset.set_epoch(epoch)", "x = base.shown(x)",
        "loader.sampler.set_epoch(epoch)", "model.data = 1", "data.classes.index('cat')", "rows_of(others)",
        "loss.backward()", "many = list(data)",
    ],
)  # fmt: skip
def test_what_only_looks_at_the_data_is_not(code: str) -> None:
    assert changed(LOOP.format(code, code)) is None


def test_the_data_set_is_followed_through_functions() -> None:
    source = """\
    def make(data):
        loader = DataLoader(data, 8)
        return loader, len(data)
    def train(loader, epoch):
        for data in loader:
            data = data.to(device)
            loss = model(data)
        {0}
    def prepare(data):
        data.load()
    def main():
        data = Scenes()
        prepare(data)
        loader, rows = make(data)
        for epoch in range(9):
            train(loader, epoch)
            {1}
    """
    assert changed(source.format("pass", "pass")) is None
    assert changed(source.format("pass", "prepare(data)")) == ("data.load()", 10)
    assert changed(source.format("loader.dataset.set_epoch(epoch)", "pass")) == ("loader.dataset.set_epoch(epoch)", 8)
    assert changed(source.format("pass", "data.set_epoch(epoch)")) == ("data.set_epoch(epoch)", 17)


def test_attributes_of_an_object() -> None:
    source = """\
    class Trainer:
        def __init__(self, data):
            self.data = data
            self.loader = DataLoader(self.data, 8)
        def fit(self):
            for epoch in range(9):
                self.epoch = epoch
                {}
                for x in self.loader:
                    pass
    """
    assert changed(source.format("pass")) is None
    assert changed(source.format("self.loader.dataset.set_epoch(epoch)")) is not None
    assert changed(source.format("self.data.epoch = epoch")) is not None
