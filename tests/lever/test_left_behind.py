"""What draws leave in a data set is found where the script reads it, and nothing else keeps its loader as it is."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader, Subset

from hotlap.lever import drawing, left_behind
from hotlap.lever.catalog import background_fetch, loader_workers
from hotlap.lever.drawing import Drawing
from hotlap.lever.left_behind import read_of_draws
from hotlap.testing.lever_target import LocalTarget

CLIPS = """
import os

class Base:
    rows = 8
    def __len__(self):
        return self.rows

class Clips(Base):
    def __init__(self):
        self.skipped, self.bad, self.counts, self.file, self.cache, self.last = 0, [], {"all": 0}, None, {}, ""
    def load(self, index):
        BODY
        return float(index)
    def __getitem__(self, index):
        return self.load(index)
    def share_of_skipped(self):
        return self.skipped / self.rows
    def __repr__(self):
        return f"{self.skipped} {self.last}"
"""
SKIPPED = "self.skipped += 1"
OPENED = "self.file = self.file or open(os.devnull)"
ONCE = "if self.file is None:\n            self.file = open(os.devnull)"

numbers = itertools.count()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """A module of a script that is this alone: a data set, and ``rest`` after it."""
    for module in (left_behind, drawing):
        monkeypatch.setattr(module, "is_users_module", lambda name, module=None: name.startswith("left_behind_"))

    def make(body: str, rest: str) -> Any:
        name = f"left_behind_{next(numbers)}"
        path = tmp_path / f"{name}.py"
        path.write_text(CLIPS.replace("BODY", body) + rest)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    yield make


READ = {
    "a count": (SKIPPED, "def train(data):\n    print(data.skipped)\n"),
    "through the loader": (SKIPPED, "def train(loader):\n    return loader.dataset.skipped > 3\n"),
    "by a method": (SKIPPED, "def train(data):\n    print(data.share_of_skipped())\n"),
    "a list": ("self.bad.append(index)", "def train(data):\n    print(len(data.bad))\n"),
    "a table": ("self.counts['all'] += 1", "def train(data):\n    print(data.counts['all'])\n"),
    "the last": ("self.last = str(index)", "def train(data):\n    print('at', data.last)\n"),
    "a global": ("global SEEN\n        SEEN += 1", "SEEN = 0\ndef train():\n    print(SEEN)\n"),
    "a list of the module": ("BAD.append(index)", "BAD = []\ndef train():\n    print(len(BAD))\n"),
    "of what it holds": ("self.log.at = index", "def train(data):\n    print(data.log.at)\n"),
    "a file that has to be open": (ONCE, "def train(data):\n    data.file.close()\n"),
}


@pytest.mark.parametrize(("body", "rest"), READ.values(), ids=READ)
def test_what_the_script_reads_is_named_with_its_line(body: str, rest: str, made: Callable[..., Any]) -> None:
    module = made(body, rest)
    data = module.Clips()
    found = read_of_draws(Drawing(DataLoader(Subset(data, range(4)))))
    assert found is not None
    name, place = found.split(" ")
    assert name in body and place.startswith(f"({Path(module.__file__).name}:")
    line = Path(module.__file__).read_text().splitlines()[int(place[:-1].rpartition(":")[2]) - 1]
    assert name in line


UNREAD = {
    "nothing is set": ("pass", "def train(data):\n    print(data.skipped)\n"),
    "nobody reads it": (SKIPPED, "def train(data):\n    data.skipped = 0\n"),
    "its own method, which nobody calls": (SKIPPED, ""),
    "a local variable of that name": (SKIPPED, "def train(data):\n    skipped = 3\n    print(skipped)\n"),
    "a setting of that name": (SKIPPED, "import types\nargs = types.SimpleNamespace(skipped=1)\nprint(args.skipped)\n"),
    "another class": (SKIPPED, "class Log:\n    skipped = 2\n    def tell(self):\n        return self.skipped\n"),
    "it is emptied": ("self.bad.append(index)", "def train(data):\n    data.bad.clear()\n"),
    "a file, where it is open": (ONCE, "def train(data):\n    if data.file is not None:\n        data.file.close()\n"),
    "a cache of its own": ("self.cache[index] = index", "def train(cache):\n    return cache\n"),
    "a variable of its own": ("seen = [index]\n        seen.append(1)", "seen = []\nprint(seen)\n"),
    "an object of its own": (
        "row = types.SimpleNamespace()\n        row.label = index",
        "import types\ndef train(batch):\n    print(batch.label)\n",
    ),
    "a library's": ("os.environ['SEED'] = '1'", "def train():\n    print(os.environ)\n"),
    "a number that processes share": ("self.shared.value += 1", "def train(data):\n    print(data.shared.value)\n"),
}


@pytest.mark.parametrize(("body", "rest"), UNREAD.values(), ids=UNREAD)
def test_what_is_not_read_or_not_left_is_no_reason(body: str, rest: str, made: Callable[..., Any]) -> None:
    assert read_of_draws(Drawing(DataLoader(made(body, rest).Clips()))) is None


SAMPLER = """
class Order:
    at = 0
    def __len__(self):
        return 8
    def __iter__(self):
        for self.at in range(8):
            yield self.at
def train(order):
    print(order.at)
"""


METHOD_NAMED_AS_AN_ATTRIBUTE = """
class Position:
    def __init__(self):
        self.taken = []
    def rows(self):
        self.taken.append(1)
def train(position):
    print(position.taken)
"""


def test_a_method_that_no_draw_calls_leaves_nothing(made: Callable[..., Any]) -> None:
    """Its name is that of an attribute which draws read."""
    module = made("index = min(index, self.rows)", METHOD_NAMED_AS_AN_ATTRIBUTE)
    data = module.Clips()
    data.position = module.Position()
    assert read_of_draws(Drawing(DataLoader(data))) is None
    module = made("self.position.rows()", METHOD_NAMED_AS_AN_ATTRIBUTE)
    data = module.Clips()
    data.position = module.Position()
    assert "taken (" in str(read_of_draws(Drawing(DataLoader(data))))


OF_ANOTHER = """
class Reader:
    skipped = 0
    def read(self):
        self.skipped += 1
def train(data):
    print(data.share_of_skipped())
"""


def test_what_another_class_calls_so_is_another(made: Callable[..., Any]) -> None:
    module = made("self.reader.read()", OF_ANOTHER)
    data = module.Clips()
    data.reader = module.Reader()
    assert read_of_draws(Drawing(DataLoader(data))) is None


LAMBDA = """
from torch.utils.data import DataLoader
def train(data):
    loader = DataLoader(data, collate_fn=lambda rows: rows)
    return loader
print(train)
"""


def test_a_function_in_a_statement_does_not_do_what_that_does(made: Callable[..., Any]) -> None:
    module = made("pass", LAMBDA)
    assert read_of_draws(Drawing(module.train(module.Clips()))) is None


def test_samplers_and_collate_functions_are_read_too(made: Callable[..., Any]) -> None:
    module = made("pass", SAMPLER)
    assert "at (" in str(read_of_draws(Drawing(DataLoader(module.Clips(), sampler=module.Order()))))
    collating = "BAD = []\ndef stack(rows):\n    BAD.append(rows)\n    return rows\nprint(BAD)\n"
    module = made("pass", collating)
    assert "BAD (" in str(read_of_draws(Drawing(DataLoader(module.Clips(), collate_fn=module.stack))))


@pytest.mark.parametrize("lever", [loader_workers, background_fetch])
def test_a_script_that_counts_what_it_skips_counts_as_before(
    lever: Any, made: Callable[..., Any], tmp_path: Path
) -> None:
    module = made(SKIPPED, "def counts(data, loader):\n    return [data.skipped for _ in loader]\n")
    setting = {"workers": 1, "prefetch": 2, "torch_threads": None} if lever is loader_workers else {"depth": 2}
    with LocalTarget(str(tmp_path)) as target:
        lever.apply(target, setting)
        data = module.Clips()
        assert module.counts(data, DataLoader(data, batch_size=2)) == [2, 4, 6, 8]
    assert "the script reads skipped (left_behind_" in target.reasons[-1] and target.changes <= 0
