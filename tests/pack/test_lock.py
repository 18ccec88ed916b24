"""A pack is written by one process at a time; where that cannot be made sure, the reason is told."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from hotlap.pack.lock import _taken
from hotlap.records.errors import HotlapError


@pytest.mark.parametrize(
    ("number", "told"),
    [(errno.EWOULDBLOCK, "is being packed by another process"), (errno.ENOSYS, "cannot be locked .*not implemented"),
     (errno.ENOLCK, "cannot be locked .*No locks available")],
)  # fmt: skip
def test_a_file_system_without_locks_is_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(HotlapError, match=told):
        _taken(tmp_path / "p.lock", tmp_path / "p")
