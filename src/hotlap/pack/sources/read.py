"""Reading one file of a source, here or at an fsspec URL: whole, unchanged while we read, inside its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from hotlap.pack.sources.contract import BadRow
from hotlap.records.errors import HotlapError

__all__ = ["NETWORK", "inside", "is_url", "leads_out", "list_all", "list_folder", "read_file", "stamp"]

NETWORK = "If the network failed, run the same command again."


def is_url(path: str) -> bool:
    """``s3://…``, ``gs://…``, ``http://…``: for fsspec."""
    return "://" in path


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
            raise BadRow(f"{path} cannot be read: {str(err).rstrip('.') or type(err).__name__}.", NETWORK) from err
    else:
        content = _read_local(path)
    if not content:
        raise BadRow(f"{path} is empty (0 bytes).")
    return content


def _read_local(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            before = os.fstat(file.fileno())
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
    return name.startswith("/") or ".." in name.split("/")


def inside(root: str, name: str) -> str:
    """``root/name``; BadRow when that leads out of ``root`` (``..``, an absolute path, a link)."""
    if leads_out(name):
        raise BadRow(f"{name!r} leads out of {root}.", "Pass --root, the folder that all names lie in.")
    if is_url(root):
        return root.rstrip("/") + "/" + name
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


def _files(folder: str, chain: frozenset[str]) -> Iterator[str]:
    """Files below ``folder``, through linked folders too (a subset of classes is often made of links).

    ``chain``: the real folders on the way here; a link back to one of them is not followed.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError as err:
        raise HotlapError(f"{folder} cannot be listed: {err.strerror}.") from err
    for entry in entries:
        if not entry.is_dir():
            yield entry.path
        elif (real := os.path.realpath(entry.path)) not in chain:
            yield from _files(entry.path, chain | {real})


def list_all(root: str) -> list[str]:
    """Names of all files below ``root``, hidden ones too, sorted, ``/`` between folders; [""] where it is a file."""
    if is_url(root):
        fsspec = _fsspec()
        try:
            system, base = fsspec.core.url_to_fs(root)
            found = [str(p)[len(base) :].lstrip("/") for p in system.find(base)]
        except Exception as err:  # as in read_file
            hint = f"Is the address right, and fsspec's package for it installed? {NETWORK}"
            raise HotlapError(f"{root} cannot be listed: {str(err).rstrip('.') or type(err).__name__}.", hint) from err
        if root.startswith("http"):  # a server's page of a folder has links that sort it (?C=N;O=D)
            found = [name for name in found if "?" not in name]
    else:
        if not Path(root).is_dir():
            raise HotlapError(f"{root} is not a folder.", "Name a folder, a file, or a URL.")
        found = [os.path.relpath(path, root) for path in _files(root, frozenset((os.path.realpath(root),)))]
    return sorted(found)


def list_folder(root: str, suffixes: tuple[str, ...]) -> list[str]:
    """Names of the files below ``root`` with these suffixes; hidden ones (``._a.jpg``) are no samples."""
    return [
        name
        for name in list_all(root)
        if name.lower().endswith(suffixes) and not PurePosixPath(name).name.startswith(".")
    ]
