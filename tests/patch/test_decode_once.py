"""Files that the helper `decode_once` cannot look at are the reader's own business."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotlap.patch.helpers import decode_once as decode_once_module
from hotlap.patch.helpers.decode_once import decode_once


def test_a_missing_file_is_the_readers_to_tell(tmp_path: Path) -> None:
    class Unreadable(Exception):
        pass

    def strict(name: str) -> None:
        raise Unreadable(name)

    def lenient(name: str) -> None:
        return None

    for name in (str(tmp_path / "none.png"), "a\0b.png"):
        assert decode_once(1 << 20, lenient, name) is None
        with pytest.raises(Unreadable):
            decode_once(1 << 20, strict, name)
    (tmp_path / "none.png").write_bytes(b"now")
    assert decode_once(1 << 20, lambda name: Path(name).read_bytes(), str(tmp_path / "none.png")) == b"now"


def test_ranks_with_a_folder_each_share_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_once_module, "DECODED_FOLDER", str(tmp_path / "decoded"))
    (tmp_path / "decoded").mkdir()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    reads = []

    def read(name: str) -> bytes:
        reads.append(name)
        return Path(name).read_bytes()

    for _ in range(2):
        for number in range(16):
            path = tmp_path / str(number)
            if not path.exists():
                path.write_bytes(bytes(60_000))
            decode_once(1 << 20, read, str(path))
    assert len(reads) == 16 + 12, "four of 60 kB are a quarter of 1 MiB"


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no file system in memory")
def test_the_loaders_own_batches_have_room_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"a")
    usage = SimpleNamespace(total=1 << 30, free=1 << 27)
    monkeypatch.setattr(decode_once_module._shutil, "disk_usage", lambda folder: usage)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        monkeypatch.setattr(decode_once_module, "DECODED_FOLDER", folder)
        for kept in (0, 2):
            assert decode_once(1 << 20, lambda name: Path(name).read_bytes(), str(tmp_path / "a")) == b"a"
            assert len(os.listdir(folder)) == kept
            usage.free = 1 << 29
