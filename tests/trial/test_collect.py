"""Source lines are read as Python reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.trial.collect import _read

BEGAN = 4e9
"""After every file was written."""
LOOP = "for x in données:\n    pass\n"


@pytest.mark.parametrize(
    "data",
    [LOOP.encode("utf-8-sig"), f"# -*- coding: latin-1 -*-\n{LOOP}".encode("latin-1")],
    ids=["byte order mark", "latin-1"],
)
def test_a_file_in_its_own_encoding(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "train.py").write_bytes(data)
    found = _read(tmp_path / "train.py", BEGAN)
    assert any(line == "for x in données:" for line in found.lines) and found.loops


def test_what_cannot_be_read_has_no_lines(tmp_path: Path) -> None:
    assert _read(tmp_path / "none.py", BEGAN).lines == []
    (tmp_path / "odd.py").write_bytes(b"# coding: nothing\nx = 1\n")
    assert _read(tmp_path / "odd.py", BEGAN).lines[1] == "x = 1"


def test_a_file_edited_since_the_run_began_is_not_quoted(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP)
    written = script.stat().st_mtime
    assert _read(script, written - 1.0).lines, "saved and started at once, by clocks that differ a little"
    assert not _read(script, written - 60.0).lines
