"""Allocators are found where distributions and conda put them, of this machine's kind alone."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from hotlap.machine.allocators import find_allocators

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing is preloaded elsewhere")


def library(folder: Path, name: str) -> str:
    """A file with the head of this Python's own, which is all that is looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    with open(sys.executable, "rb") as python:
        path.write_bytes(python.read(64))
    return str(path)


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python in an environment of its own."""
    home = tmp_path / "env" / "bin"
    home.mkdir(parents=True)
    (home / "python").symlink_to(shutil.which(sys.executable) or sys.executable)
    return str(home / "python")


def test_one_per_allocator_tcmalloc_first(tmp_path: Path, python: str) -> None:
    folder = tmp_path / "usr/lib/x86_64-linux-gnu"
    assert find_allocators(python, tmp_path) == []
    jemalloc = library(folder, "libjemalloc.so.2")
    library(folder, "libtcmalloc.so.4")
    minimal = library(folder, "libtcmalloc_minimal.so.4")
    assert find_allocators(python, tmp_path) == [minimal, jemalloc]


def test_the_environments_own_come_first(tmp_path: Path, python: str) -> None:
    library(tmp_path / "usr/lib64", "libjemalloc.so.2")
    own = library(tmp_path / "env/lib", "libjemalloc.so.2")
    assert find_allocators(python, tmp_path) == [own]


def test_other_kinds_and_broken_links_are_passed_over(tmp_path: Path, python: str) -> None:
    folder = tmp_path / "usr/lib"
    other = Path(library(folder, "libjemalloc.so.1"))
    data = bytearray(other.read_bytes())
    data[18:20] = b"\xf3\x00" if data[18:20] != b"\xf3\x00" else b"\x3e\x00"  # another machine
    other.write_bytes(data)
    (folder / "libjemalloc.so.2").symlink_to(folder / "gone")
    (folder / "libtcmalloc.so").write_text("/* GNU ld script */")
    assert find_allocators(python, tmp_path) == []
    right = library(tmp_path / "usr/local/lib", "libjemalloc.so.2")
    assert find_allocators(python, tmp_path) == [right]
