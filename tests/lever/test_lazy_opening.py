"""What a data set opens at its first use, in each process, hinders no cache; what only looks like that does."""

from __future__ import annotations

import functools
import os
import random
import struct
import threading
import zipfile
from pathlib import Path
from typing import Any

import h5py
import lmdb
import numpy as np
import pytest
import torch
from lever_support import ROWS, Turning
from torch.utils.data import DataLoader, Dataset

from hotlap.lever.catalog import cache_sample
from hotlap.lever.constant_parts import constant_parts
from hotlap.lever.lazy_opening import settled
from hotlap.lever.part_memory import PROOFS
from hotlap.testing.lever_target import LocalTarget

READS: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    READS.clear()
    monkeypatch.setattr("hotlap.lever.part_memory.QUICK_S", 0.0)
    monkeypatch.setattr("hotlap.lever.part_memory.WORTH", 0.0)
    monkeypatch.setattr("hotlap.lever.part_memory.LONGEST_LOOK_S", 10.0)
    real = np.sqrt

    def root(value: Any) -> Any:
        READS.append(os.getpid())
        return real(value)

    monkeypatch.setattr(np, "sqrt", root)


class Rows(Dataset[Any]):
    """Row n holds n three times; what is read is made a root, so that reads can be counted."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rows"
        self.file: Any = None
        self.process = 0
        self.make([np.full(3, n, np.float32) for n in range(ROWS)])

    def make(self, rows: Any) -> None:
        self.path.write_bytes(b"".join(row.tobytes() for row in rows))

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        row = self.load(index)
        return row[::-1] + random.random()

    def load(self, index: int) -> Any:
        raise NotImplementedError


class OfDescriptor(Rows):
    def load(self, index: int) -> Any:
        if self.file is None or self.process != os.getpid():
            try:
                self.file, self.process = os.open(self.path, os.O_RDONLY), os.getpid()
            except OSError as err:
                raise RuntimeError(f"{self.path} cannot be read") from err
        return np.sqrt(np.frombuffer(os.pread(self.file, 12, 12 * index), np.float32))


class OfHdf5(Rows):
    """The name of its file is known to the method that opens it alone."""

    def make(self, rows: Any) -> None:
        with h5py.File(self.path, "w") as file:
            file["rows"] = np.stack(rows)

    def load(self, index: int) -> Any:
        if not self.file:
            self.open()
        return np.sqrt(self.file["rows"][index])

    def open(self) -> None:
        self.file = h5py.File(self.path, "r")


class OfProperty(OfHdf5):
    @functools.cached_property
    def rows(self) -> Any:
        return h5py.File(self.path, "r")["rows"]

    def load(self, index: int) -> Any:
        return np.sqrt(self.rows[index])


class OfLmdb(Rows):
    def make(self, rows: Any) -> None:
        with lmdb.open(str(self.path)) as env, env.begin(write=True) as change:
            for number, row in enumerate(rows):
                change.put(struct.pack("<I", number), row.tobytes())

    def load(self, index: int) -> Any:
        if not hasattr(self, "env"):
            import lmdb as database

            self.env = database.open(str(self.path), readonly=True, lock=False)
        with self.env.begin() as reading:
            return np.sqrt(np.frombuffer(reading.get(struct.pack("<I", index)), np.float32))


class OfZip(Rows):
    def make(self, rows: Any) -> None:
        with zipfile.ZipFile(self.path, "w") as file:
            for number, row in enumerate(rows):
                file.writestr(str(number), row.tobytes())

    def load(self, index: int) -> Any:
        if getattr(self, "file", None) is None:
            self.file = zipfile.ZipFile(self.path)
        return np.sqrt(np.frombuffer(self.file.read(str(index)), np.float32))


class Reader:
    """The file is an object's of the data set."""

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, None

    def __call__(self, index: int) -> bytes:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDONLY)
        return os.pread(self._file, 12, 12 * index)


class OfReader(Rows):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.read = Reader(self.path)

    def load(self, index: int) -> Any:
        return np.sqrt(np.frombuffer(self.read(index), np.float32))


class Whole(OfHdf5):
    """Nothing is drawn at random: the sample itself is what is kept, though none may be drawn to try it."""

    def __getitem__(self, index: int) -> Any:
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return np.sqrt(self.file["rows"][index]), index


class WholeOfProperty(OfProperty):
    def __getitem__(self, index: int) -> Any:
        return np.sqrt(self.rows[index]), index


class OfEither(Rows):
    """Its condition opens nothing: the way that is taken is followed."""

    def load(self, index: int) -> Any:
        if not self.process:
            return self.nothing()
        return np.float32([index] * 3)

    def nothing(self) -> Any:
        return np.sqrt(np.zeros(3))


def drawn(data: Any, epochs: int = 3, **options: Any) -> list[Any]:
    random.seed(7)
    loader: DataLoader[Any] = DataLoader(data, 4, collate_fn=list, **options)
    return [
        [np.asarray(s[0] if isinstance(s, tuple) else s).tolist() for s in b] for _ in range(epochs) for b in loader
    ]


def with_lever(data: Any, scratch: Path, **options: Any) -> tuple[list[Any], LocalTarget]:
    with LocalTarget(str(scratch)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        READS.clear()
        found = drawn(data, **options)
    assert not target.problems
    return found, target


OPENED = [OfDescriptor, OfHdf5, OfProperty, OfLmdb, OfZip, OfReader, Whole, WholeOfProperty]


@pytest.mark.parametrize("kind", [*OPENED, OfEither])
def test_it_is_read_once_and_gives_the_same(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    want = drawn(kind(tmp_path / "a"))
    found, target = with_lever(kind(tmp_path / "b"), tmp_path)
    assert found == want and not target.reasons
    assert len(READS) < 2 * ROWS


@pytest.mark.parametrize("kind", OPENED)
def test_nothing_is_opened_before_the_workers_are_forked_and_they_share(kind: Any, tmp_path: Path) -> None:
    """A file that HDF5 has open is broken in a fork, and a place that is shared is nobody's."""
    data, log = kind(tmp_path), tmp_path / "log"
    note: Any = functools.partial(_note_reads, log)
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        loader: DataLoader[Any] = DataLoader(
            data, batch_sampler=Turning(), collate_fn=list, num_workers=2, multiprocessing_context="fork",
            persistent_workers=True, worker_init_fn=note,
        )  # fmt: skip
        for _ in range(2):
            for batch in loader:
                values = [float(np.sort(s[0] if isinstance(s, tuple) else s)[0]) for s in batch]
                assert all(0 <= value < ROWS**0.5 + 1 for value in values)
        opened = [name for name in ("file", "env", "rows") if vars(data).get(name) is not None]
        del loader
    assert not opened and not READS
    each = PROOFS + 1 + 1 + 2  # proofs, the witness's own, the call that opened, and a look in each epoch
    assert ROWS <= len(log.read_bytes()) <= ROWS + 2 * each < 2 * ROWS


def _note_reads(log: Path, number: int) -> None:
    real = np.sqrt

    def root(value: Any) -> Any:
        with log.open("ab") as out:
            out.write(b".")
        return real(value)

    np.sqrt = root  # type: ignore[assignment]


@pytest.mark.parametrize("options", [{}, {"num_workers": 2, "multiprocessing_context": "fork"}])
def test_another_file_in_its_place_is_seen(options: Any, tmp_path: Path) -> None:
    def changed(scratch: Path) -> list[Any]:
        (scratch / "one").mkdir(), (scratch / "two").mkdir()
        data, other = OfHdf5(scratch / "one"), OfHdf5(scratch / "two")
        other.make(
            [np.full(3, n + 100 * (n > ROWS // 2), np.float32) for n in range(ROWS)]
        )  # not where they are proved
        torch.manual_seed(3)
        first = drawn(data, **options)
        data.path, data.file = other.path, None
        return [*first, *drawn(data, **options)]

    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    want = changed(tmp_path / "a")
    with LocalTarget(str(tmp_path)) as target:
        cache_sample.apply(target, {"max_bytes": 1 << 24})
        assert changed(tmp_path / "b") == want


class Counts(Rows):
    """Its condition never ends."""

    def load(self, index: int) -> Any:
        if self.process == 0:
            self.seen = getattr(self, "seen", 0) + 1
        return np.sqrt(np.float32([index] * 3))


class Remembers(Rows):
    def load(self, index: int) -> Any:
        if self.file is None:
            self.file = index
        return np.sqrt(np.float32([index] * 3))


class TellsTheRest(Rows):
    def load(self, index: int) -> Any:
        scale = 1
        if self.file is None:
            scale = 2
            self.file = 1
        return np.sqrt(np.float32([index] * 3)) * scale


class ReturnsEarly(Rows):
    def load(self, index: int) -> Any:
        if self.file is None:
            self.file = 1
            return np.sqrt(np.float32([index + 1] * 3))
        return np.sqrt(np.float32([index] * 3))


class Largest(Rows):
    def load(self, index: int) -> Any:
        if index > self.process:
            self.process = index
        return np.sqrt(np.float32([index] * 3))


class Streams(Rows):
    def load(self, index: int) -> Any:
        if self.file is None:
            self.file = self.path.open("rb")
        self.file.seek(12 * index)
        return np.sqrt(np.frombuffer(self.file.read(12), np.float32))


class Written(OfHdf5):
    def open(self) -> None:
        self.file = h5py.File(self.path, "r+")


class OfThread(Rows):
    """What a thread holds for itself is seen by no other."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.here = threading.local()
        self.here.last = 0

    def __getitem__(self, index: int) -> Any:
        self.here.last = index
        return self.load(index % 8) + random.random()

    def load(self, index: int) -> Any:
        return np.sqrt(np.float32([index, self.here.last // 8, 0]))


class Replaces(Rows):
    """An LMDB that is written under a name that may mean anything."""

    def load(self, index: int) -> Any:
        if self.file is None:
            self.file = lmdb.open(str(self.path) + ".written")
        with self.file.begin(write=True) as change:
            change.replace(b"last", str(index).encode())
        return np.sqrt(np.float32([index] * 3))


@pytest.mark.parametrize(
    "kind", [OfThread, Replaces, Counts, Remembers, TellsTheRest, ReturnsEarly, Largest, Streams, Written]
)
def test_what_only_looks_like_it_is_computed_each_time(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    data, other = kind(tmp_path / "a"), kind(tmp_path / "b")
    want = drawn(data)
    found, _ = with_lever(other, tmp_path)
    assert found == want and len(READS) >= 3 * ROWS
    assert getattr(other, "seen", None) == getattr(data, "seen", None)


class Mangled:
    def __init__(self) -> None:
        self.__file = None

    def read(self, index: int) -> Any:
        if self.__file is None:
            self.__file = open(__file__)  # noqa: SIM115
        elif index:
            return index
        return self.__file


def test_a_settled_method_stores_nothing_and_asks_its_object() -> None:
    found = settled(Mangled.read)
    assert "open" not in found.code.co_names and "_Mangled__file" in found.code.co_names
    thing: Any = Mangled()
    assert [test(thing) for test in found.tests] == [True]
    thing._Mangled__file = 1
    assert [test(thing) for test in found.tests] == [False]


def test_without_its_source_a_method_is_what_it_is() -> None:
    names: dict[str, Any] = {}
    exec("class A:\n def read(self):\n  if self.x is None:\n   self.x = 1\n  return self.x\n", names)
    assert settled(names["A"].read).code is names["A"].read.__code__
    assert constant_parts(names["A"]()) == []
