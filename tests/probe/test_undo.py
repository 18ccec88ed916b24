"""What was put on the script's objects is taken off again, and keeps none of them alive."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
import torch

from hotlap.probe.undo import Undo


class Thing:
    """As a loader or a model: what it does comes from its class, or lies in itself."""

    def forward(self) -> str:
        return "the class's"


@pytest.fixture
def no_collector() -> Iterator[None]:
    """As ``gc-freeze`` leaves it: what only the collector finds stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_of_one_object_the_inherited_and_the_own_come_back() -> None:
    undo, thing = Undo(), Thing()
    thing.workers = 2  # type: ignore[attr-defined]
    undo.replace_in(thing, "forward", lambda: "new")
    undo.replace_in(thing, "workers", 4)
    undo.replace_in(thing, "workers", 8)
    assert (thing.forward(), vars(thing)["workers"]) == ("new", 8)
    assert undo.undo_all() == []
    assert (thing.forward(), vars(thing)) == ("the class's", {"workers": 2})


def test_a_guarded_attribute_is_set_and_comes_back() -> None:
    """A DataLoader refuses to have its sampler set."""
    undo, loader = Undo(), torch.utils.data.DataLoader(range(4))
    sampler = loader.sampler
    undo.replace_in(loader, "sampler", [3, 2])
    assert loader.sampler == [3, 2]
    assert undo.undo_all() == [] and loader.sampler is sampler


def test_what_somebody_else_put_there_stays_and_is_told() -> None:
    undo, thing = Undo(), Thing()
    undo.replace_in(thing, "forward", lambda: "new")
    thing.forward = lambda: "theirs"  # type: ignore[method-assign]
    assert undo.undo_all() == ["Thing.forward was replaced by somebody else"]
    assert thing.forward() == "theirs"


def test_neither_the_object_nor_what_it_held_is_kept_alive(no_collector: None) -> None:
    undo, thing, held, new = Undo(), Thing(), Thing(), Thing()
    thing.held = held  # type: ignore[attr-defined]
    undo.replace_in(thing, "held", new)
    seen = [weakref.ref(held), weakref.ref(new), weakref.ref(thing)]
    del held, new
    assert seen[0]() is not None, "it is put back as long as the object lives"
    del thing
    assert [ref() for ref in seen] == [None] * 3
    assert undo.undo_all() == []
