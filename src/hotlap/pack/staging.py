"""``hotlap stage``: a data set (packed or not) copied to a local disk, once, whole, and proved equal.

The source is only read. Space is looked at first. A copy that was interrupted goes on where it was. Each file appears
under its name only when what lies on the disk has the hash of what was read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotlap.pack.sources.contract import reason
from hotlap.pack.sources.listing import list_all
from hotlap.pack.sources.read import NETWORK, inside, is_url, leads_out, named
from hotlap.records.errors import HotlapError
from hotlap.records.sizes import size_text

__all__ = ["Staged", "stage"]

_BLOCK = 4 << 20


@dataclass(frozen=True)
class Staged:
    """What a staging did."""

    files: int
    copied_files: int
    total_bytes: int
    copied_bytes: int


@dataclass(frozen=True)
class _File:
    name: str
    size_bytes: int
    mtime_ns: int | None


def stage(source: str, target: str | Path, progress: Callable[[int, int], None] | None = None) -> Staged:
    """Copy the folder (or URL, or single file) ``source`` into the folder ``target``."""
    folder = Path(target)
    root, names = _names(source)
    if Path(source).is_dir() and folder.resolve().is_relative_to(Path(root).resolve()):
        raise HotlapError(f"{folder} lies in {root}: a folder cannot be staged into itself.", "Name a DST outside it.")
    files = [_look(root, name) for name in names]
    todo = [f for f in files if not _is_staged(folder / f.name, f)]
    already = sum(_partial(folder / f.name).stat().st_size for f in todo if os.path.exists(_partial(folder / f.name)))
    needed = sum(f.size_bytes for f in todo) - already
    _check_space(folder, needed)
    total, done = sum(f.size_bytes for f in files), sum(f.size_bytes for f in files) - sum(f.size_bytes for f in todo)

    def report(copied: int) -> None:
        if progress is not None:
            progress(done + copied, total)

    for file in todo:
        try:
            _copy(root, file, folder / file.name, report)
        except HotlapError:
            raise
        except Exception as err:
            if not isinstance(err, OSError) and not is_url(root):
                raise
            raise HotlapError(f"Staging {file.name} failed: {reason(err)}{_place(err)}.", _hint(err, folder)) from err
        done += file.size_bytes
        report(0)
    return Staged(len(files), len(todo), total, sum(f.size_bytes for f in todo))


def _names(source: str) -> tuple[str, list[str]]:
    """The folder (or URL) that is staged, and the files below it; none of them would be written outside the target."""
    if not is_url(source) and Path(source).is_file():
        return str(Path(source).parent), [Path(source).name]
    root, names = source, list_all(source)
    if names == [""]:  # the URL of a file
        root, _, name = source.rpartition("/")
        names = named(root, [name])
    names = [name for name in names if name and not re.fullmatch(r"\..+\.part", name.rpartition("/")[2])]
    if not names:
        raise HotlapError(f"{source} holds no files to stage.", "Is it the right folder?")
    for name in filter(leads_out, names):
        raise HotlapError(f"{source} names {name!r}, which leads out of the folder.", "Can its server be trusted?")
    return root, names


def _place(err: Exception) -> str:
    name = getattr(err, "filename", None)
    return f" ({name})" if name else ""


def _hint(err: Exception, folder: Path) -> str:
    """What to do next: few failures go away by themselves."""
    number = err.errno if isinstance(err, OSError) else None
    if number == errno.EROFS:
        return f"The disk of {folder} is read-only: choose another DST."
    if number in (errno.EACCES, errno.EPERM):
        return f"May you read the source, and write into {folder}?"
    if number in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        return "A file lies where a folder is to be, or a folder where a file is: remove it, or choose another DST."
    first = "Make room and run" if number in (errno.ENOSPC, errno.EDQUOT) else "Run"
    return f"{first} the same command again: it goes on from there."


def _look(root: str, name: str) -> _File:
    if is_url(root):
        import fsspec

        place = inside(root, name)
        try:
            info = fsspec.open(place).fs.info(place)
        except Exception as err:  # each of fsspec's systems has errors of its own; aiohttp's are no OSError
            raise HotlapError(f"{place} cannot be read: {reason(err)}.", NETWORK) from err
        if info.get("size") is None:
            raise HotlapError(f"{root}/{name} does not tell its size.")
        return _File(name, int(info["size"]), None)
    try:
        found = os.stat(Path(root, name))
    except OSError as err:
        raise HotlapError(
            f"{Path(root, name)} cannot be read: {err.strerror}.",
            "Repair or remove it: it may be a link that leads nowhere.",
        ) from err
    if not stat.S_ISREG(found.st_mode):
        raise HotlapError(f"{Path(root, name)} is no file (a pipe, socket or device).", "Move it away, or remove it.")
    return _File(name, found.st_size, found.st_mtime_ns)


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _is_staged(path: Path, file: _File) -> bool:
    if not os.path.exists(path):  # unlike Path.exists it raises nothing: copying tells what is the matter
        return False
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        what = f"{path} is a folder; a file of that name is to be copied there."
        raise HotlapError(what, "Remove or rename it, or choose another DST.")
    return found.st_size == file.size_bytes and file.mtime_ns in (None, found.st_mtime_ns)


def _check_space(folder: Path, needed: int) -> None:
    place = folder
    while not os.path.exists(place):
        place = place.parent
    if not place.is_dir():
        raise HotlapError(f"{place} is a file; DST is the folder to copy into.", "Name a folder, or one to be made.")
    free = shutil.disk_usage(place).free
    if needed > free:
        what = f"{folder} has room for {size_text(free)}, {size_text(needed)} are needed."
        raise HotlapError(what, "Free some space, or stage to another disk.")


def _open(root: str, name: str) -> Any:
    if is_url(root):
        import fsspec

        return fsspec.open(inside(root, name), "rb").open()
    return open(Path(root, name), "rb")


def _copy(root: str, file: _File, path: Path, report: Callable[[int], None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial(path)
    done = partial.stat().st_size if partial.exists() else 0
    if done > file.size_bytes:
        partial.unlink()
        done = 0
    read = hashlib.sha256()
    with _open(root, file.name) as source, open(partial, "ab") as out:
        left = done
        while left:  # what an earlier run has written must be what the source holds: hashed again, not copied again
            block = source.read(min(_BLOCK, left))
            if not block:
                raise HotlapError(f"{file.name} became shorter while it was staged.", "Start again once it is whole.")
            read.update(block)
            left -= len(block)
            report(done - left)
        while block := source.read(_BLOCK):
            out.write(block)
            read.update(block)
            done += len(block)
            report(done)
        out.flush()
        os.fsync(out.fileno())
    written = _hash(partial)
    if written != read.hexdigest() or partial.stat().st_size != file.size_bytes or _changed(root, file):
        partial.unlink()
        raise HotlapError(
            f"{file.name}: the copy does not equal the source.", "The source changed, or a disk is failing."
        )
    if file.mtime_ns is not None:
        os.utime(partial, ns=(file.mtime_ns, file.mtime_ns))
    os.replace(partial, path)


def _changed(root: str, file: _File) -> bool:
    return not is_url(root) and _look(root, file.name) != file


def _hash(path: Path) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()
