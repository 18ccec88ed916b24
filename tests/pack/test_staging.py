"""Staging: equal to the source, once, resumed, never half there, never onto itself."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pack_support import served

from hotlap.pack import stage
from hotlap.pack import staging as module
from hotlap.records.errors import HotlapError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    (root / "deep").mkdir(parents=True)
    (root / "a.bin").write_bytes(bytes(range(256)) * 5000)
    (root / "deep" / "b.bin").write_bytes(b"b" * 7)
    (root / "deep" / "empty").write_bytes(b"")
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_a_copy_once(source: Path, tmp_path: Path) -> None:
    before = contents(source)
    first = stage(str(source), tmp_path / "target")
    assert contents(tmp_path / "target") == before == contents(source)
    assert first.copied_files == 3 and first.copied_bytes == sum(map(len, before.values()))
    assert stage(str(source), tmp_path / "target").copied_files == 0
    (source / "deep" / "b.bin").write_bytes(b"c" * 7)
    assert stage(str(source), tmp_path / "target").copied_files == 1
    assert contents(tmp_path / "target") == contents(source)


def test_goes_on_where_it_was(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / ".a.bin.part").write_bytes((source / "a.bin").read_bytes()[:300_000])
    stage(str(source), target)
    assert contents(target) == contents(source)


def test_a_partial_copy_of_something_else_is_found(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / ".a.bin.part").write_bytes(b"x" * 300_000)
    with pytest.raises(HotlapError, match="does not equal the source"):
        stage(str(source), target)
    assert not (target / "a.bin").exists()
    stage(str(source), target)
    assert contents(target) == contents(source)


def test_space_is_looked_at_first(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(HotlapError, match=r"room for 1,000 B, 1\.2 MiB are needed"):
        stage(str(source), tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_what_cannot_be_staged(source: Path, tmp_path: Path) -> None:
    with pytest.raises(HotlapError, match="into itself"):
        stage(str(source), source / "deep" / "target")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(HotlapError, match="no files"):
        stage(str(tmp_path / "nothing"), tmp_path / "target")
    with pytest.raises(HotlapError, match="not a folder"):
        stage(str(tmp_path / "gone"), tmp_path / "target")


def test_a_single_file_and_a_disk_that_fails(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage(str(source / "a.bin"), tmp_path / "one")
    assert list(contents(tmp_path / "one")) == ["a.bin"]
    monkeypatch.setattr(module, "_hash", lambda path: "0" * 64)
    shutil.rmtree(tmp_path / "one")
    with pytest.raises(HotlapError, match="does not equal"):
        stage(str(source / "a.bin"), tmp_path / "one")
    assert contents(tmp_path / "one") == {}


def test_a_file_into_a_folder_beside_it(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source)
    stage("a.bin", "local")
    assert contents(source / "local") == {"a.bin": (source / "a.bin").read_bytes()}


def test_progress_within_a_file(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 400_000)
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / ".a.bin.part").write_bytes((source / "a.bin").read_bytes()[:500_000])
    seen: list[tuple[int, int]] = []
    stage(str(source), tmp_path / "target", lambda done, total: seen.append((done, total)))
    total = 1_280_007
    assert [done for done, _ in seen] == [400_000, 500_000, 900_000, 1_280_000, 1_280_000, total, total, total]
    assert {all_ for _, all_ in seen} == {total}


def test_names_that_are_taken(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for target in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(HotlapError, match=r"file is a file; DST is the folder"):
            stage(str(source), target)
    (tmp_path / "target" / "a.bin").mkdir(parents=True)
    with pytest.raises(HotlapError, match=r"a\.bin is a folder; .* Remove or rename it"):
        stage(str(source), tmp_path / "target")
    assert not any(path.is_file() for path in (tmp_path / "target").rglob("*")), "found before anything is copied"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "deep").write_text("x")
    with pytest.raises(HotlapError, match=r"\(.*other/deep\)\. A file lies where a folder is to be"):
        stage(str(source), tmp_path / "other")


@pytest.mark.parametrize(("number", "hint"), [
    (errno.EROFS, "is read-only: choose another DST."), (errno.EACCES, "write into .*target?"),
    (errno.ENOSPC, "Make room and run the same command again"), (errno.EIO, "Run the same command again"),
])  # fmt: skip
def test_what_to_do_about_a_disk(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number), "x")

    monkeypatch.setattr(module.os, "fsync", fail)
    with pytest.raises(HotlapError, match=rf"{os.strerror(number)} \(x\)\..*{hint}"):
        stage(str(source), tmp_path / "target")


def test_a_link_that_leads_nowhere_is_named(source: Path, tmp_path: Path) -> None:
    (source / "deep" / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(HotlapError, match=r"deep/link cannot be read: .* leads nowhere"):
        stage(str(source), tmp_path / "target")


def test_an_address_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("fsspec").core
    with pytest.raises(HotlapError, match=r"nosuch://x cannot be listed: .* Is the address right"):
        stage("nosuch://x", tmp_path / "target")

    def missing(address: str) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(core, "url_to_fs", missing)
    with pytest.raises(HotlapError, match=r"Install s3fs to access S3\. .* fsspec's package for it"):
        stage("s3://bucket", tmp_path / "target")
    monkeypatch.undo()
    with pytest.raises(HotlapError, match="cannot be listed"):
        monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.find", _forbidden)
        stage("memory://bucket", tmp_path / "target")


def _forbidden(*_: object, **__: object) -> None:
    raise PermissionError("Forbidden")


@pytest.fixture
def site(source: Path) -> Iterator[str]:
    """The folder that holds the source, by HTTP."""
    for package in ("fsspec", "aiohttp"):
        pytest.importorskip(package)
    with served(source.parent, "cut.bin") as address:
        yield address


def page(folder: Path, *links: str) -> None:
    """What a server shows of a folder."""
    (folder / "index.html").write_text("".join(f'<a href="{link}">{link}</a>\n' for link in links))


def test_a_listing_that_leads_out_of_the_folder(source: Path, tmp_path: Path, site: str) -> None:
    (tmp_path / "secret.bin").write_bytes(b"secret")
    page(source / "deep", "b.bin", "../../secret.bin")
    with pytest.raises(HotlapError, match=r"names '\.\./\.\./secret\.bin', which leads out of the folder"):
        stage(f"{site}/source/deep", tmp_path / "far" / "away" / "target")
    assert not (tmp_path / "far").exists()


def test_a_folder_and_a_file_by_url(source: Path, tmp_path: Path, site: str) -> None:
    page(source / "deep", "?C=N;O=D", "b.bin", "empty")
    stage(f"{site}/source/deep", tmp_path / "target")
    assert contents(tmp_path / "target") == {"b.bin": b"b" * 7, "empty": b""}
    stage(f"{site}/source/a.bin", tmp_path / "one")
    assert contents(tmp_path / "one") == {"a.bin": (source / "a.bin").read_bytes()}


def test_names_by_url_are_those_of_the_files(source: Path, tmp_path: Path, site: str) -> None:
    for name in ("a b#c.bin", "名.bin"):
        (source / "deep" / name).write_bytes(name.encode())
    stage(f"{site}/source/deep", tmp_path / "target")
    assert contents(tmp_path / "target") == contents(source / "deep")
    stage(f"{site}/source/deep/a%20b%23c.bin", tmp_path / "one")
    assert contents(tmp_path / "one") == {"a b#c.bin": b"a b#c.bin"}


def test_an_encoded_way_out_of_the_folder_is_none(source: Path, tmp_path: Path, site: str) -> None:
    page(source / "deep", "b.bin", "%2e%2e%2f%2e%2e%2fsecret.bin")
    with pytest.raises(HotlapError, match="leads out of the folder"):
        stage(f"{site}/source/deep", tmp_path / "target")


def test_a_connection_that_ends_is_told(source: Path, tmp_path: Path, site: str) -> None:
    (source / "cut.bin").write_bytes(b"c" * 5000)
    with pytest.raises(HotlapError, match=r"Staging cut\.bin failed: .*Run the same command again"):
        stage(f"{site}/source/cut.bin", tmp_path / "target")
    assert not (tmp_path / "target" / "cut.bin").exists()


def test_hidden_files_belong_to_a_folder_partial_copies_do_not(source: Path, tmp_path: Path) -> None:
    for name in (".gitignore", ".part", "deep/.hidden.bin", ".a.bin.part", "deep/.b.bin.part"):
        (source / name).write_bytes(b"h")
    stage(str(source), tmp_path / "target")
    assert {".gitignore", ".part", "deep/.hidden.bin"} <= contents(tmp_path / "target").keys()
    assert not {".a.bin.part", "deep/.b.bin.part"} & contents(tmp_path / "target").keys()
