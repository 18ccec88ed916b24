"""Arrays by mapping: the same bits, private to each caller, never of a file that the run writes."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy
import pytest

from hotlap.lever import array_maps
from hotlap.lever.array_maps import mapping_load, sparing_save
from hotlap.lever.catalog import mmap_arrays
from hotlap.testing.lever_target import LocalTarget

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


def test_a_mapped_file_may_be_saved_over(load: Any, tmp_path: Path) -> None:
    """As a script that changes an array in place and keeps it under its name."""
    path = saved(tmp_path / "a.npy", numpy.arange(200_000.0))
    os.chmod(path, 0o640)
    load(path)
    array, other = load(path), load(path)
    array[0] = -1.0
    save = sparing_save(numpy, 4096)
    save(path, array)
    assert len(load.used) == 2 and array[-1] == other[-1] == 199_999.0 and other[0] == 0.0
    assert numpy.array_equal(numpy.load(path), array) and os.stat(path).st_mode & 0o777 == 0o640
    save(file=Path(path[: -len(".npy")]), arr=other * 2)
    assert numpy.load(path)[1] == 2.0, "the suffix may be left to numpy"
    assert os.listdir(tmp_path) == ["a.npy"]


def test_what_is_saved_as_ever(tmp_path: Path) -> None:
    save = sparing_save(numpy, 4096)
    new, small, linked = tmp_path / "new.npy", tmp_path / "small.npy", tmp_path / "linked.npy"
    save(new, numpy.ones(2000))
    saved(small, numpy.zeros(3))
    os.link(new, linked)
    inodes = [os.stat(p).st_ino for p in (small, linked)]
    save(small, numpy.ones(2000))
    save(linked, numpy.zeros(2000))
    assert [os.stat(p).st_ino for p in (small, linked)] == inodes and numpy.load(new).sum() == 0
    with open(tmp_path / "open.npy", "wb") as file:
        save(file, numpy.ones(3))
    assert numpy.load(tmp_path / "open.npy").sum() == 3
    with pytest.raises(ValueError, match="allow_pickle"):
        save(small, numpy.array([{}] * 2000, dtype=object), allow_pickle=False)
    assert numpy.load(small).sum() == 2000 and len(os.listdir(tmp_path)) == 4, "nothing is left beside it"


def test_a_link_to_a_file_stays_one(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path = saved(tmp_path / "there" / "a.npy", numpy.zeros(2000))
    link = tmp_path / "a.npy"
    link.symlink_to(path)
    sparing_save(numpy, 4096)(link, numpy.ones(2000))
    assert link.is_symlink() and numpy.load(path).sum() == 2000


def test_the_lever_saves_so(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npy", numpy.arange(200_000.0))
    with LocalTarget(str(tmp_path / "scratch")) as target:
        mmap_arrays.apply(target, {"min_bytes": 4096})
        numpy.load(path)
        array = numpy.load(path)
        numpy.save(path, array)
        assert array.sum() == numpy.load(path).sum() == numpy.arange(200_000.0).sum()
    assert target.problems == []
