"""Arrays by mapping: the same bits, private to each caller, never of a file that the run writes."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy
import pytest

from hotlap.lever import array_maps
from hotlap.lever.array_maps import mapping_load

OLD = (1e9, 1e9)


def saved(path: Path, array: Any, old: bool = True) -> str:
    numpy.save(path, array, allow_pickle=array.dtype == object)
    if old:
        os.utime(path, OLD)
    return str(path)


@pytest.fixture
def load() -> Any:
    used: list[bool] = []
    mapped = mapping_load(numpy, 4096, lambda: used.append(True))
    mapped.used = used  # type: ignore[attr-defined]
    return mapped


@pytest.mark.parametrize("order", ["C", "F"])
def test_from_the_second_load_on(load: Any, tmp_path: Path, order: str) -> None:
    plain = numpy.asarray(numpy.random.RandomState(0).rand(50, 30), order=order)  # type: ignore[call-overload]
    path = saved(tmp_path / "a.npy", plain)
    first, second, third = load(path), load(path), load(path)
    assert len(load.used) == 2
    for array in (first, second, third):
        assert type(array) is numpy.ndarray and array.flags.writeable
        assert array.tobytes("A") == plain.tobytes("A") and array.strides == plain.strides
    second[0] = -1.0
    assert numpy.array_equal(third, plain) and numpy.array_equal(numpy.load(path), plain), "written to by one alone"


def test_what_is_not_mapped(load: Any, tmp_path: Path) -> None:
    large = numpy.zeros(2000)
    cases = [
        (saved(tmp_path / "new.npy", large, old=False), {}),
        (saved(tmp_path / "small.npy", numpy.zeros(3)), {}),
        (saved(tmp_path / "objects.npy", numpy.array([{"a": 1}] * 2000, dtype=object)), {"allow_pickle": True}),
        (saved(tmp_path / "read.npy", large), {"mmap_mode": "r"}),
    ]
    for path, kwargs in cases:
        for _ in range(3):
            expected = numpy.load(path, **kwargs)
            assert numpy.array_equal(load(path, **kwargs), expected)
    assert not load.used
    with pytest.raises(ValueError, match="allow_pickle"):
        for _ in range(3):
            load(cases[2][0])
    with pytest.raises(FileNotFoundError):
        load(str(tmp_path / "absent.npy"))


def test_a_file_that_is_written_anew_is_read(load: Any, tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npy", numpy.zeros(2000))
    load(path)
    saved(tmp_path / "b.npy", numpy.ones(2000), old=False)
    os.replace(tmp_path / "b.npy", path)
    assert load(path).sum() == 2000 == load(path).sum() and not load.used


def test_no_more_mappings_than_the_system_bears(load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_maps, "_MAPS", 3)
    path = saved(tmp_path / "a.npy", numpy.ones(2000))
    kept = [load(path) for _ in range(6)]
    assert len(load.used) == 3 and sum(a.sum() for a in kept) == 12000
    parts = [array[10:20] for array in kept]
    del kept
    gc.collect()
    load(path)
    assert len(load.used) == 3, "a part keeps its mapping"
    del parts
    gc.collect()
    load(path)
    assert len(load.used) == 4
