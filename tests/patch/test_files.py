"""Diffs that git applies; files written all or none; the line that attaches a plan."""

from __future__ import annotations

import ast
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


def test_untracked_files_are_seen_where_the_settings_hide_them(repository: Path) -> None:
    git(repository, "config", "status.showUntrackedFiles", "no")
    (repository / "new.py").write_text("")
    (repository / "folder").mkdir()
    (repository / "folder" / "ignored.py").write_text("")
    (repository / ".git" / "info" / "exclude").write_text("folder\n")
    check_clean(repository / "a.py")
    for name in ("new.py", "folder/ignored.py"):
        with pytest.raises(HotlapError, match=f"{name} is not tracked"):
            check_clean(repository / name)


def test_a_link_is_as_clean_as_the_file_that_would_be_written(repository: Path) -> None:
    (repository / "link.py").symlink_to("b.py")
    (repository / "stray.py").symlink_to("new.py")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "links")
    check_clean(repository / "link.py")
    (repository / "b.py").write_text("changed\n")
    (repository / "new.py").write_text("")
    with pytest.raises(HotlapError, match=r"link\.py has changes"):
        check_clean(repository / "link.py")
    with pytest.raises(HotlapError, match=r"stray\.py is not tracked"):
        check_clean(repository / "stray.py")


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


def test_owners_stay(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked = repository / "b.py", []
    path.chmod(0o751)
    before = path.stat()

    def chown(part: Path, user: int, group: int) -> None:
        asked.append((part.name, user, group))
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", chown)
    write_all({path: (b"z = 3\n", b"z = 4\n")})
    assert asked == [(f".b.py.{os.getpid()}.tmp", before.st_uid, before.st_gid)]
    assert path.read_bytes() == b"z = 4\n" and path.stat().st_mode & 0o777 == 0o751


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives a file to another user")
def test_a_file_of_another_user_stays_that_user_s(repository: Path) -> None:
    path = repository / "b.py"
    os.chown(path, 1234, 4321)
    path.chmod(0o4755)
    write_all({path: (b"z = 3\n", b"z = 4\n")})
    after = path.stat()
    assert (after.st_uid, after.st_gid, after.st_mode & 0o7777) == (1234, 4321, 0o4755)


@pytest.mark.parametrize("raised", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_text_that_cannot_be_staged_leaves_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    def fsync(_: int) -> None:
        raise raised

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises((HotlapError, KeyboardInterrupt)) as caught:
        write_all({repository / "b.py": (b"z = 3\n", b"z = 9\n")})
    if isinstance(raised, OSError):
        assert f"Cannot write {(repository / 'b.py').resolve()}: No space left" in str(caught.value)
    assert sorted(p.name for p in repository.iterdir() if p.name != ".git") == ["a.py", "b.py"]
    assert (repository / "b.py").read_bytes() == b"z = 3\n"


def test_all_files_or_none(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = repository / "a.py", repository / "b.py"
    before = first.read_bytes()
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if target == second.resolve():
            raise OSError(28, "No space left on device", str(target))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(HotlapError, match=r"Cannot write \S*/b\.py: No space left"):
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


def test_a_byte_order_mark_stays_in_front() -> None:
    mark = b"\xef\xbb\xbf"
    after = attach_file("s.py", mark + b"import torch\n", "fast.yaml").after
    assert after == mark + b'import hotlap; hotlap.attach("fast.yaml")\nimport torch\n'
    compile(after, "s.py", "exec")


@pytest.mark.parametrize("cookie", [b"", b"# coding: latin-1\n"])
@pytest.mark.parametrize(
    "plan",
    ["it's/fast.yaml", 'a "fast" one.yaml', "a\\b\n.yaml", "d\xe9j\xe0.yaml", "\U0001f600.yaml", "bad\udce9.yaml"],
)
def test_any_plan_path_is_attached_as_it_is(plan: str, cookie: bytes) -> None:
    after = attach_file("s.py", cookie + b"import torch\n", plan).after
    call = next(node for node in ast.walk(ast.parse(after)) if isinstance(node, ast.Call))
    assert ast.literal_eval(call.args[0]) == plan


def test_a_line_that_cannot_go_in_is_said_to_a_person() -> None:
    with pytest.raises(HotlapError, match=r"s\.py:\d: the line would leave .* by hand"):
        attach_file("s.py", b"from __future__ import annotations; x = (\n    1)\n", "fast.yaml")
