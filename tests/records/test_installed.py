"""Which files are the user's."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest
import torch

from hotlap.records import installed
from hotlap.records.installed import is_installed


@pytest.mark.parametrize(
    "path",
    [
        json.__file__,
        str(torch.__file__),
        "/home/someone/.local/lib/python3.11/site-packages/augment/crop.py",  # pip install --user
        "/usr/lib/python3/dist-packages/augment.py",  # Debian's, seen from a virtual environment
    ],
)
def test_what_was_installed(path: str) -> None:
    assert is_installed(path)


@pytest.mark.parametrize("path", [__file__, "/home/someone/site-packages.py", "/srv/dist-packages-my/train.py", ""])
def test_what_is_the_users(path: str) -> None:
    assert not is_installed(path)


def test_python_in_a_folder_that_is_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"purelib": str(tmp_path / "link")})
    roots = installed._roots()
    assert str(tmp_path / "real" / "package.py").startswith(roots)
    assert str(tmp_path / "link" / "package.py").startswith(roots)
    assert not str(tmp_path / "really.py").startswith(roots)
