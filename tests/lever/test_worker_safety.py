"""Which loaders may be given worker processes."""

from __future__ import annotations

import io
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset

from hotlap.lever.worker_safety import can_use_workers, holds_open_file, lies_on_device


class Held(Dataset[Any]):
    def __init__(self, held: Any) -> None:
        self.held = held

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


def _zip(folder: Path) -> Any:
    zipfile.ZipFile(folder / "a.zip", "w").close()
    return zipfile.ZipFile(folder / "a.zip")


def _tar(folder: Path) -> Any:
    tarfile.open(folder / "a.tar", "w").close()
    return tarfile.open(folder / "a.tar")


def _arrays(folder: Path) -> Any:
    np.savez(folder / "a.npz", a=np.zeros(3))
    return np.load(folder / "a.npz")


def _file(folder: Path) -> Any:
    (folder / "a.bin").write_bytes(b"abc")
    return (folder / "a.bin").open("rb")


def _hdf5(folder: Path) -> Any:
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py")
    h5py.File(folder / "a.h5", "w").close()
    return h5py.File(folder / "a.h5", "r")


@pytest.mark.parametrize("opened", [_file, _zip, _tar, _arrays, _hdf5, lambda _: sqlite3.connect(":memory:")])
def test_an_open_file_is_not_shared_among_processes(tmp_path: Path, opened: Callable[[Path], Any]) -> None:
    held = opened(tmp_path)
    for data in (Held(held), Subset(Held([held]), [0]), ConcatDataset([Held({"a": held}), Held(1)])):
        assert holds_open_file(data) and not can_use_workers(DataLoader(data))
    assert can_use_workers(DataLoader(Held(held), num_workers=2)), "the script does so itself"
    held.close()


class OpensLate:
    """Opens its file when it is first asked for it, or for anything else that it does not have."""

    __slots__ = ("file", "folder")

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getattr__(self, name: str) -> Any:
        self.file = _file(self.folder)
        return getattr(self.file, name) if name != "file" else self.file


def test_what_is_closed_or_in_memory_is_no_open_file(tmp_path: Path) -> None:
    closed = _file(tmp_path)
    closed.close()
    np.save(tmp_path / "a.npy", np.zeros(3))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for held in (closed, io.BytesIO(b"abc"), mapped, tmp_path, ["a"] * 1000, {"a": None}):
        assert not holds_open_file(Held(held)) and can_use_workers(DataLoader(Held(held)))
    late = OpensLate(tmp_path)
    assert not holds_open_file(Held([late])) and not holds_open_file(late) and not lies_on_device(late)
    assert late.file.readable() and holds_open_file(Held([late])), "it was not opened before"
    late.file.close()
    around: list[Any] = []
    around.append(around)
    assert not holds_open_file(Held(around))
