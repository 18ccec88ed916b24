"""Files that the helper `decode_once` cannot look at are the reader's own business."""

from __future__ import annotations

from pathlib import Path

import pytest

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
