"""``module:Dataset`` in several processes: all of them read the data set that one of them made."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hotlap.pack import open_source
from hotlap.pack.sources import python_dataset
from hotlap.records.errors import HotlapError

MODULE = """
import random
import numpy as np

names = ["a", "b", "c"]

class Shuffled:
    def __init__(self): self.order = random.sample(range(1000), 1000)
    def __len__(self): return 1000
    def __getitem__(self, k): return {"number": self.order[k], "noise": random.random() if k % 2 else 0.0}

class Named(Shuffled):
    def __getitem__(self, k): return {"label": names.index("abc"[k % 3])}

class Mapped:
    def __init__(self): self.x = np.load("x.npy", mmap_mode="r")
    def __len__(self): return len(self.x)
    def __getitem__(self, k): return {"x": self.x[k]}
"""


@pytest.fixture
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "my_orders.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield
    monkeypatch.delitem(__import__("sys").modules, "my_orders", raising=False)


@pytest.mark.usefixtures("_module")
def test_the_data_set_itself_is_sent() -> None:
    source = open_source("my_orders:Shuffled")
    there = pickle.loads(pickle.dumps(source))
    assert [there.row(k)["number"] for k in range(1000)] == [source.row(k)["number"] for k in range(1000)]


@pytest.mark.usefixtures("_module")
def test_rows_that_are_others_in_another_process_are_noticed() -> None:
    sent = pickle.dumps(open_source("my_orders:Named"))
    assert len(pickle.loads(sent)) == 1000
    importlib.import_module("my_orders").names.reverse()  # as a list of a set may be there
    with pytest.raises(HotlapError, match=r"my_orders:Named\[0\] is another row in another process"):
        pickle.loads(sent)


@pytest.mark.usefixtures("_module")
def test_what_would_be_copied_whole_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    np.save("x.npy", np.zeros((100, 100)))
    source = open_source("my_orders:Mapped")
    assert len(pickle.loads(pickle.dumps(source))) == 100
    monkeypatch.setattr(python_dataset, "MOST_BYTES", 79_999)
    with pytest.raises(ValueError, match="more than 79999 bytes"):
        pickle.dumps(source)
