"""Reading one file of a source, here or at an fsspec URL: whole, unchanged while we read, inside its folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from hotlap.pack.sources.contract import BadRow, reason
from hotlap.records.errors import HotlapError

__all__ = [
    "NETWORK",
    "exists",
    "inside",
    "is_url",
    "leads_out",
    "list_all",
    "list_folder",
    "list_top",
    "named",
    "read_file",
    "stamp",
]

NETWORK = "If the network failed, run the same command again."


def is_url(path: str) -> bool:
    """``s3://…``, ``gs://…``, ``http://…``: for fsspec."""
    return "://" in path


def _is_http(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def _fsspec() -> Any:
    try:
        import fsspec
    except ImportError as err:
        raise HotlapError("Reading a URL needs fsspec, which is not installed.", "pip install 'hotlap[pack]'") from err
    return fsspec


def read_file(path: str) -> bytes:
    """The file's bytes; BadRow when it is missing, empty, or changes while it is read."""
    if is_url(path):
        try:
            with _fsspec().open(path, "rb") as remote:
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
        system, place = _fsspec().core.url_to_fs(path)
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
        return [unquote(name) if _is_http(root) else name for name in names]
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
        return root.rstrip("/") + "/" + (quote(name) if _is_http(root) else name)
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


def _names(folder: str, before: str, chain: frozenset[str]) -> Iterator[str]:
    """``before`` and the name of every file below ``folder``, through linked folders too (a subset of classes is often
    made of links).

    ``chain``: the real folders on the way here; a link back to one of them is not followed.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError as err:
        raise HotlapError(f"{folder} cannot be listed: {err.strerror}.") from err
    for entry in entries:
        if not entry.is_dir():
            yield before + entry.name
        elif (real := os.path.realpath(entry.path)) not in chain:
            yield from _names(entry.path, f"{before}{entry.name}/", chain | {real})


def _list_here(root: str) -> list[str]:
    if not Path(root).is_dir():
        raise HotlapError(f"{root} is not a folder.", "Name a folder, a file, or a URL.")
    return list(_names(root, "", frozenset((os.path.realpath(root),))))


def _lists_at_once(system: Any) -> bool:
    """Whether the system has a way of its own to list all below a folder, as object stores have."""
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem

    if isinstance(system, AsyncFileSystem):
        return type(system)._find is not AsyncFileSystem._find
    return type(system).find is not AbstractFileSystem.find


def _entries(system: Any, folder: str) -> Iterator[tuple[str, bool]]:
    """What lies in ``folder`` itself: its path, and whether it is a folder."""
    try:
        entries = system.ls(folder, detail=True)
    except Exception as err:  # as in read_file
        raise _not_listed(system.unstrip_protocol(folder), err) from err
    place = folder.rstrip("/")
    for entry in entries:
        path = str(entry["name"])
        below = path[len(place) :]
        if _is_http(place):  # a server's page has links to itself, too, and to itself sorted (?C=N;O=D)
            parts = [part for part in below.split("/") if part not in ("", ".")]
            if not parts or "?" in below:
                continue
            path = "/".join([place, *parts]) + "/" * below.endswith("/")
        is_folder = entry["type"] == "directory"
        if not is_folder or (below.strip("/") and ".." not in below.split("/")):
            yield path, is_folder


def _walk(system: Any, folder: str) -> Iterator[str]:
    """Paths of all files below ``folder``. fsspec's own walk leaves out a subfolder that cannot be listed."""
    for path, is_folder in _entries(system, folder):
        if is_folder:
            yield from _walk(system, path)
        else:
            yield path


def list_top(url: str) -> list[str]:
    """Names of the files in the folder at a URL, those of its subfolders left out, sorted; none where it is a file."""
    try:
        system, base = _fsspec().core.url_to_fs(url)
        found = [path for path, is_folder in _entries(system, base) if not is_folder and path != base]
    except HotlapError:
        raise
    except Exception as err:  # as in read_file
        raise _not_listed(url, err) from err
    return sorted(_below(base, found, url))


def _below(base: str, paths: Iterable[str], url: str) -> set[str]:
    """Paths below ``base``, which lies at ``url``, as names."""
    names = {str(path)[len(base) :].lstrip("/") for path in paths}
    return {unquote(name) for name in names} if _is_http(url) else names


def _not_listed(place: str, err: Exception) -> HotlapError:
    hint = f"Is the address right, and fsspec's package for it installed? {NETWORK}"
    return HotlapError(f"{place} cannot be listed: {reason(err)}.", hint)


def _list_url(root: str) -> list[str]:
    fsspec = _fsspec()
    try:
        system, base = fsspec.core.url_to_fs(root)
        found = system.find(base) if _lists_at_once(system) else list(_walk(system, base))
        found = found or ([base] if system.isfile(base) else [])
    except HotlapError:
        raise
    except Exception as err:  # as in read_file
        raise _not_listed(root, err) from err
    return list(_below(base, found, root))


def list_all(root: str) -> list[str]:
    """Names of all files below ``root``, hidden ones too, sorted, ``/`` between folders; [""] where it is a file.

    As in :func:`list_folder`, they are what :func:`inside` takes: a server's ``%20`` is a space.
    """
    return sorted(_list_url(root) if is_url(root) else _list_here(root))


def list_folder(root: str, suffixes: tuple[str, ...]) -> list[str]:
    """Names of the files below ``root`` with these suffixes; hidden ones (``._a.jpg``) are no samples.

    A pipe or device of such a name is among them: as a row that cannot be packed.
    """
    names = _list_url(root) if is_url(root) else _list_here(root)
    return sorted(n for n in names if n.lower().endswith(suffixes) and not PurePosixPath(n).name.startswith("."))
