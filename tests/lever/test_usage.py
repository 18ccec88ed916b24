"""What caches take is counted over processes and caches, and never what others need."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotlap.lever import file_cache, usage
from hotlap.lever.file_cache import FileCache
from hotlap.lever.memo import CHUNK, Room
from hotlap.lever.usage import Usage, leaves_room

MIB = 1 << 20


def test_caches_of_one_folder_share_what_each_was_promised(tmp_path: Path) -> None:
    one, other = (FileCache(str(tmp_path / name), MIB) for name in ("cache-decode", "cache-sample"))
    kept = [cache.put(f"{i}", bytes(100_000)) for i in range(8) for cache in (one, other)]
    assert sum(kept) == 10, "of 25 pages each"
    assert one.get("0") == bytes(100_000) and other.get("0") == bytes(100_000)
    assert not FileCache(str(tmp_path / "empty"), MIB).used(), "whether a lever was of use, each tells for itself"


def test_workers_share_the_room_for_results(tmp_path: Path) -> None:
    """Each has a copy of what the training process holds."""
    rooms = [Room(0, Usage(str(tmp_path / "calls"), MIB).take) for _ in range(3)]
    kept = sum(1000 for _ in range(1500) for room in rooms if room.take(1000))
    assert 0.8 * MIB < kept <= MIB
    assert not rooms[0].take(CHUNK) and not Room(1000).take(1001)


def test_nothing_is_kept_when_memory_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = [1 << 30]
    monkeypatch.setattr(usage, "_free_bytes", lambda: (free[0], 1 << 34))
    cache = FileCache(str(tmp_path / "cache"), 1 << 30)
    assert cache.put("a", bytes(100)), "a sixteenth of all is free"
    free[0] = 1 << 28
    assert cache.reserve(9 << 20), "not looked at for each"
    assert not cache.reserve(9 << 20) and cache.get("a") == bytes(100)


def test_batches_of_the_loaders_workers_have_room_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = SimpleNamespace(f_bavail=30, f_blocks=100, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda folder: blocks)
    assert leaves_room("/dev/shm/hotlap-1/cache-decode", 5 * 4096)
    assert not leaves_room("/dev/shm/hotlap-1/cache-decode", 6 * 4096)
    assert leaves_room("/tmp/hotlap-1/cache-decode", 6 * 4096), "there is no memory to be short of"
    monkeypatch.setattr(file_cache, "in_worker", lambda: True)
    monkeypatch.setattr(usage, "MEMORY_FILES", f"{tmp_path}/")
    cache = FileCache(str(tmp_path / "cache"), MIB)
    assert cache.put("a", bytes(5 * 4096)) and not cache.put("b", bytes(6 * 4096)) and cache.get("b") is None


def test_the_tightest_group_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 900 kB\n",
        "/proc/self/cgroup": "1:memory:/old\n0::/pod/step\n",
        "/sys/fs/cgroup/pod/memory.max": "409600\n",
        "/sys/fs/cgroup/pod/memory.current": "300000\n",
        "/sys/fs/cgroup/pod/memory.stat": "anon 1\ninactive_file 50000\n",
        "/sys/fs/cgroup/pod/step/memory.max": "max\n",
    }

    def opened(path: str, **more: str) -> object:
        if path not in files:
            raise FileNotFoundError(path)
        real = tmp_path / "file"
        real.write_text(files[path])
        return real.open()

    monkeypatch.setattr(usage, "open", opened, raising=False)
    assert usage._free_bytes() == (159_600, 409_600)
    del files["/proc/self/cgroup"]
    assert usage._free_bytes() == (900 * 1024, 1000 * 1024)
    files.clear()
    assert usage._free_bytes() is None
