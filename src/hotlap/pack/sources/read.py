"""Reading one file of a source, here or at an fsspec URL: whole, unchanged while we read, inside its folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from hotlap.pack.sources.contract import BadRow, reason
from hotlap.records.errors import HotlapError

__all__ = [
    "NETWORK",
    "exists",
    "fsspec_module",
    "inside",
    "is_http",
    "is_url",
    "leads_out",
    "named",
    "read_file",
    "stamp",
]

NETWORK = "If the network failed, run the same command again."


def is_url(path: str) -> bool:
    """``s3://…``, ``gs://…``, ``http://…``: for fsspec."""
    return "://" in path


def is_http(path: str) -> bool:
    """Whether the names at this URL are quoted (a space is ``%20``)."""
    return path.startswith(("http://", "https://"))


def fsspec_module() -> Any:
    """fsspec, imported where it is first needed; HotlapError where it is not installed."""
    try:
        import fsspec
    except ImportError as err:
        raise HotlapError("Reading a URL needs fsspec, which is not installed.", "pip install 'hotlap[pack]'") from err
    return fsspec


def read_file(path: str) -> bytes:
    """The file's bytes; BadRow when it is missing, empty, or changes while it is read."""
    if is_url(path):
        try:
            with fsspec_module().open(path, "rb") as remote:
                content = bytes(remote.read())
        except HotlapError:
            raise
        except Exception as err:  # each of fsspec's systems has errors of its own; aiohttp's are no OSError
            raise BadRow(f"{path} cannot be read: {reason(err)}.", NETWORK) from err
    else:
        content = _read_local(path)
    if not content:
        raise BadRow(f"{path} is empty (0 bytes).")
    return content


def exists(path: str) -> bool:
    """Whether there is a file at a URL; HotlapError where it does not tell."""
    try:
        system, place = fsspec_module().core.url_to_fs(path)
        return bool(system.exists(place))
    except HotlapError:
        raise
    except Exception as err:  # as in read_file
        raise HotlapError(f"{path} cannot be looked for: {reason(err)}.", NETWORK) from err


def _open_at_once(path: str, flags: int) -> int:
    """Opening a pipe otherwise waits for its writer for ever."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _read_local(path: str) -> bytes:
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise BadRow(f"{path} is no file (a pipe, socket or device).")
            content = file.read()
            after = os.stat(path)
    except OSError as err:
        raise BadRow(f"{path} cannot be read: {err.strerror}.") from err
    marks = [(s.st_ino, s.st_size, s.st_mtime_ns) for s in (before, after)]
    if marks[0] != marks[1] or len(content) != after.st_size:
        raise BadRow(f"{path} changed while it was read.")
    return content


def leads_out(name: str) -> bool:
    """Whether ``folder/name`` may lie outside the folder by its name alone."""
    return name.startswith("/") or (".." in name and ".." in name.split("/"))


def named(root: str, names: Iterable[str]) -> list[str]:
    """Names as a document has them, as :func:`inside` takes them: a server's ``%20`` is a space, and the absolute name
    of something below ``root`` leads there."""
    if is_url(root):
        return [unquote(name) if is_http(root) else name for name in names]
    bases = (os.path.abspath(root), os.path.realpath(root))

    def below(name: str) -> str:
        path = Path(os.path.normpath(name))
        return next((os.path.relpath(name, base) for base in bases if path.is_relative_to(base)), name)

    return [below(name) if name.startswith("/") else name for name in names]


def inside(root: str, name: str) -> str:
    """``root/name``; BadRow when that leads out of ``root`` (``..``, an absolute path, a link)."""
    if leads_out(name):
        raise BadRow(f"{name!r} leads out of {root}.", "Pass --root, the folder that all names lie in.")
    if is_url(root):
        return root.rstrip("/") + "/" + (quote(name) if is_http(root) else name)
    path = os.path.join(root, name)
    if os.path.islink(path) and not Path(path).resolve().is_relative_to(Path(root).resolve()):
        raise BadRow(f"{name!r} is a link out of {root}.")
    return path


def stamp(path: str) -> str:
    """What changes when the file does; without a local file, its name must do."""
    if is_url(path):
        return ""
    try:
        found = os.stat(path)
    except OSError:
        return "gone"
    return f"{found.st_size}:{found.st_mtime_ns}"
