"""Awkward scripts behave the same bare and under ``hotlap diagnose``. ``HOTLAP_TESTS=all`` adds the slow ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.zoo.catalogue import ANIMALS, Animal
from tests.zoo.harness import Seen, compare, differences, missing

EVERY = os.environ.get("HOTLAP_TESTS") == "all"


@pytest.mark.timeout(250)
@pytest.mark.parametrize("animal", [a for a in ANIMALS if EVERY or not a.slow], ids=lambda a: a.name)
def test_same_under_diagnose(animal: Animal, tmp_path: Path) -> None:
    lacking = missing(animal)
    if lacking is not None:
        pytest.skip(f"{lacking} is not installed")
    assert compare(animal, tmp_path) == []


def test_the_zoo_is_large_enough() -> None:
    assert len({animal.name for animal in ANIMALS}) == len(ANIMALS) >= 22


def test_every_kind_of_difference_is_seen() -> None:
    animal = Animal("made_up", ("true",), volatile=("log/*",))
    bare = Seen(b"out\n", b"err\n", 0, {"losses.txt": "1", "log/a": "1"})
    assert differences(animal, bare, Seen(b"out\n", b"err\nhotlap: done\n", 0, {"losses.txt": "1", "log/a": "2"})) == []
    for other in (
        Seen(b"out\nmore\n", b"err\n", 0, bare.files),
        Seen(b"out\n", b"hotlap\nerr\n", 0, bare.files),
        Seen(b"out\n", b"err\n", 1, bare.files),
        Seen(b"out\n", b"err\n", 0, {**bare.files, "losses.txt": "2"}),
        Seen(b"out\n", b"err\n", 0, {**bare.files, ".hotlap/run.json": "1"}),
        Seen(b"out\n", b"err\n", 0, {"losses.txt": "1"}),
    ):
        assert len(differences(animal, bare, other)) == 1
