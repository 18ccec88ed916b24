"""Diffs that git applies; files written all or none; the line that attaches a plan."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hotlap.patch.attach import attach_file
from hotlap.patch.diff import unified
from hotlap.patch.write import check_clean, write_all
from hotlap.records.errors import HotlapError


def git(folder: Path, *words: str, data: bytes = b"") -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false", *words]
    return subprocess.run(command, cwd=folder, input=data, capture_output=True, check=True).stdout.decode()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_bytes(b"x = 1\r\ny = 2")
    (tmp_path / "b.py").write_bytes(b"z = 3\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_git_applies_the_diff(repository: Path) -> None:
    after = b"x = 1\r\nw = 0\r\ny = 3"
    git(repository, "apply", "-", data=unified("a.py", (repository / "a.py").read_bytes(), after))
    assert (repository / "a.py").read_bytes() == after
    assert unified("a.py", after, after) == b""


def test_clean_files_alone_are_written(repository: Path) -> None:
    check_clean(repository / "a.py")
    (repository / "a.py").write_text("changed\n")
    (repository / "new.py").write_text("")
    with pytest.raises(HotlapError, match="not committed"):
        check_clean(repository / "a.py")
    with pytest.raises(HotlapError, match="not tracked"):
        check_clean(repository / "new.py")


def test_no_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "a.py").write_text("")
    with pytest.raises(HotlapError, match="no git repository"):
        check_clean(tmp_path / "a.py")


def test_modes_stay(repository: Path) -> None:
    path = repository / "b.py"
    path.chmod(0o751)
    write_all({path: (b"z = 3\n", b"z = 4\n")})
    assert path.read_bytes() == b"z = 4\n" and path.stat().st_mode & 0o777 == 0o751


def test_all_files_or_none(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = repository / "a.py", repository / "b.py"
    before = first.read_bytes()
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if target == second.resolve():
            raise OSError(28, "No space left on device", str(target))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(HotlapError, match="No space left"):
        write_all({first: (before, b"x = 9\n"), second: (b"z = 3\n", b"z = 9\n")})
    assert first.read_bytes() == before and second.read_bytes() == b"z = 3\n"
    assert sorted(p.name for p in repository.iterdir() if p.name != ".git") == ["a.py", "b.py"]


def test_a_file_that_changed_meanwhile_is_left(repository: Path) -> None:
    with pytest.raises(HotlapError, match="changed while"):
        write_all({repository / "b.py": (b"something else", b"z = 9\n")})
    assert (repository / "b.py").read_bytes() == b"z = 3\n"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (b"x = 1\n", 1),
        (b'"""Doc."""\nfrom __future__ import annotations\n\nimport torch\n', 3),
        (b"#!/usr/bin/env python\n# comment\nimport torch\n", 3),
    ],
)
def test_the_attaching_line(source: bytes, line: int) -> None:
    after = attach_file("s.py", source, "fast.yaml").after
    assert after.split(b"\n")[line - 1] == b'import hotlap; hotlap.attach("fast.yaml")'
    assert attach_file("s.py", after, "fast.yaml").after == after
    compile(after, "s.py", "exec")
