"""Data sets of which one sample alone draws at random, behind whatever name: their code tells, no draw of others."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy.random as chance
import pytest
from numpy.random import beta as pick
from torch.utils.data import ConcatDataset, Dataset

from hotlap.lever.sample_proof import deterministic
from hotlap.lever.sample_purity import impure_reason

ROWS, LONG = 16, 6
"""Samples, and the one that draws: none of those that a proof draws."""
SOURCE = """
import random
def fit(wave, limit):
    return cut(wave) if wave == limit else wave
def cut(wave):
    return wave + random.random()
def same(wave, limit):
    return wave * 1
"""


@pytest.fixture(autouse=True)
def _helpers() -> Iterator[None]:
    for name in ("audio_helpers", "lazy_helpers"):
        sys.modules[name] = ModuleType(name)
        exec(SOURCE, vars(sys.modules[name]))
    globals()["audio_helpers"] = sys.modules["audio_helpers"]
    yield
    for name in ("audio_helpers", "lazy_helpers"):
        sys.modules.pop(name, None)


def hidden(index: int) -> float:
    return index + random.random() if index == LONG else index


class Rows(Dataset[Any]):
    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        return [float(index)]


class Pair(NamedTuple):
    left: int

    def moved(self, index: int) -> float:
        return hidden(index) + self.left


class Cutter:
    def __init__(self, start: int = 0) -> None:
        self.start = start

    def __call__(self, index: int) -> float:
        return hidden(index)

    def fit(self, index: int) -> float:
        return hidden(index)

    @classmethod
    def of_class(cls, index: int) -> float:
        return hidden(index)

    @staticmethod
    def of_nothing(index: int) -> float:
        return hidden(index)

    fixed = functools.partialmethod(fit, LONG)

    @property
    def moved(self) -> float:
        return hidden(LONG)


class Slotted:
    __slots__ = ("_cut",)

    def __init__(self) -> None:
        self._cut = functools.partial(hidden)


class OfHolder(Rows):
    def __init__(self, held: Any) -> None:
        self.held = held


class Base(Rows):
    def __getitem__(self, index: int) -> Any:
        return [hidden(index)]


class OfModule(Rows):
    def __getitem__(self, index: int) -> Any:
        return [audio_helpers.fit(index, LONG)]  # type: ignore[name-defined]  # noqa: F821


class ImportsItself(Rows):
    def __getitem__(self, index: int) -> Any:
        import lazy_helpers  # type: ignore[import-not-found]

        return [lazy_helpers.fit(index, LONG)]


class ImportsFrom(Rows):
    def __getitem__(self, index: int) -> Any:
        from lazy_helpers import fit as fitted

        return [fitted(index, LONG)]


class OfParentByName(Base):
    def __getitem__(self, index: int) -> Any:
        return Base.__getitem__(self, index)


class OfParent(Base):
    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index)


class OfMethod(OfHolder):
    def __getitem__(self, index: int) -> Any:
        return [self.held.fit(index)]


class OfClassMethod(Rows):
    def __getitem__(self, index: int) -> Any:
        return [Cutter.of_class(index)]


class OfOwnClassMethod(Rows):
    @classmethod
    def cut(cls, index: int) -> float:
        return hidden(index)

    def __getitem__(self, index: int) -> Any:
        return [self.cut(index)]


class OfStaticMethod(OfHolder):
    def __getitem__(self, index: int) -> Any:
        return [self.held.of_nothing(index)]


class OfMadeProperty(Rows):
    def __getitem__(self, index: int) -> Any:
        return [Cutter(1).moved if index == LONG else index]


class OfPartialMethod(OfHolder):
    def __getitem__(self, index: int) -> Any:
        return [self.held.fixed() if index == LONG else index]


class OfClassAttribute(Rows):
    cut = Cutter()

    def __getitem__(self, index: int) -> Any:
        return [self.cut(index)]


class OfNamedTuple(OfHolder):
    def __getitem__(self, index: int) -> Any:
        return [self.held.moved(index)]


class OfAlias(Rows):
    def __getitem__(self, index: int) -> Any:
        return [chance.beta(1, 2) if index == LONG else index]


class OfFunctionAlias(Rows):
    def __getitem__(self, index: int) -> Any:
        return [pick(1, 2) if index == LONG else index]


class OfSlots(OfHolder):
    def __getitem__(self, index: int) -> Any:
        return [self.held._cut(index)]


class OfItems(OfHolder):
    def __getitem__(self, index: int) -> Any:
        for step in self.held:
            index = step(index) if callable(step) else index
        return [index]


def nested(value: Any, levels: int) -> Any:
    return [nested(value, levels - 1)] if levels else value


VARYING = [
    OfModule, ImportsItself, ImportsFrom, OfParentByName, OfParent, lambda: OfMethod(Cutter()), OfClassMethod,
    OfOwnClassMethod, lambda: OfStaticMethod(Cutter()), OfMadeProperty, lambda: OfPartialMethod(Cutter()),
    OfClassAttribute, lambda: OfNamedTuple(Pair(0)), OfAlias, OfFunctionAlias, lambda: OfSlots(Slotted()),
    lambda: OfItems([functools.partial(float), functools.partial(hidden)]), lambda: OfItems(nested(Cutter(), 9)),
    lambda: OfItems(iter([1, 2])), lambda: ConcatDataset([Rows(), Base()]),
]  # fmt: skip


@pytest.mark.parametrize("make", VARYING)
def test_one_sample_that_draws_is_found(make: Any) -> None:
    assert impure_reason(make()) is not None and not deterministic(make())


class Steady:
    """What the varying ones have, without a draw."""

    scale = 2
    step = functools.partial(float)

    def __call__(self, index: int) -> float:
        return float(index * self.scale)

    @classmethod
    def of_class(cls, index: int) -> float:
        return float(index + cls.scale)


class Made:
    def __init__(self, index: int) -> None:
        self.text = str(index)


class Settled(OfHolder):
    """Makes an object, whose constructor stores; imports a library where it is used."""

    def __getitem__(self, index: int) -> Any:
        import json

        return [self.held(index), Steady.of_class(index), self.held.step(index), json.dumps(Made(index).text)]


class Ghost(Rows):
    def __getitem__(self, index: int) -> Any:
        if index == LONG:
            import not_there_yet  # type: ignore[import-not-found]

            return not_there_yet.fit(index)
        return [float(index)]


def test_what_is_imported_later_has_been_read_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert deterministic(Ghost()), "there is no such module: that sample cannot be drawn"
    (tmp_path / "not_there_yet.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    assert impure_reason(Ghost()) == "__getitem__ imports not_there_yet" and not deterministic(Ghost())


def test_a_module_that_is_known_by_no_name_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "audio_helpers")
    assert impure_reason(OfModule()) == "cut uses random"


def test_what_does_not_draw_is_proven() -> None:
    assert impure_reason(Settled(Steady())) is None and deterministic(Settled(Steady()))
    assert deterministic(ConcatDataset([Rows(), Settled(Steady())]))
    assert deterministic(OfItems([functools.partial(float), functools.partial(int)]))
    assert deterministic(OfItems(nested(3, 9)))


class Iterated(Rows):
    """Has what no loader asks a map-style data set for."""

    file: Any = None

    def __getitem__(self, index: int) -> Any:
        return [self.row(index % len(self)) for _ in range(2)]

    def row(self, index: int) -> float:
        return float(index)

    def __iter__(self) -> Iterator[Any]:
        for _ in range(len(self)):
            yield self[random.randrange(len(self))]

    def __enter__(self) -> Any:
        self.file = 1
        return self

    def __exit__(self, *exc: Any) -> None:
        self.file = None


class IteratesItself(Iterated):
    def row(self, index: int) -> float:
        return next(row for row in self)  # type: ignore[no-any-return]


class HandsItselfOn(Iterated):
    def row(self, index: int) -> float:
        return float(max(map(max, self)))


class EntersItself(Iterated):
    def row(self, index: int) -> float:
        with self:
            return float(index)


class NamesIt(Iterated):
    def row(self, index: int) -> float:
        return float(next(self.__iter__()))


class IteratesParent(Iterated):
    def __init__(self) -> None:
        self.children = [self]

    def row(self, index: int) -> float:
        return float(max(max(row) for child in self.children for row in child))


class IteratesAnother(Iterated):
    def __init__(self, other: Any = None) -> None:
        self.other = other

    def row(self, index: int) -> float:
        return float(max(max(row) for row in self.other))


def test_what_a_loader_does_not_ask_a_data_set_for_is_no_reason() -> None:
    assert impure_reason(Iterated()) is None and deterministic(Iterated())


@pytest.mark.parametrize(
    "make",
    [
        IteratesItself, HandsItselfOn, EntersItself, NamesIt, IteratesParent, lambda: IteratesAnother(Iterated()),
        lambda: IteratesAnother(IteratesAnother()),
    ],
)  # fmt: skip
def test_a_data_set_that_is_iterated_by_its_own_code_is_read_whole(make: Any) -> None:
    assert impure_reason(make()) is not None
