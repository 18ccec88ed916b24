"""The names of the files below a folder, here or at an fsspec URL, as :func:`~hotlap.pack.sources.read.inside` takes
them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from hotlap.pack.manifest import MANIFEST, WORK
from hotlap.pack.sources.contract import reason
from hotlap.pack.sources.read import NETWORK, fsspec_module, is_http, is_url
from hotlap.records.errors import HotlapError

__all__ = ["list_all", "list_folder", "list_folders", "list_top"]


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
        if is_http(place):  # a server's page has links to itself, too, and to itself sorted (?C=N;O=D)
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
        system, base = fsspec_module().core.url_to_fs(url)
        found = [path for path, is_folder in _entries(system, base) if not is_folder and path != base]
    except HotlapError:
        raise
    except Exception as err:  # as in read_file
        raise _not_listed(url, err) from err
    return sorted(_below(base, found, url))


def _below(base: str, paths: Iterable[str], url: str) -> set[str]:
    """Paths below ``base``, which lies at ``url``, as names."""
    names = {str(path)[len(base) :].lstrip("/") for path in paths}
    return {unquote(name) for name in names} if is_http(url) else names


def _not_listed(place: str, err: Exception) -> HotlapError:
    hint = f"Is the address right, and fsspec's package for it installed? {NETWORK}"
    return HotlapError(f"{place} cannot be listed: {reason(err)}.", hint)


def _list_url(root: str) -> list[str]:
    try:
        system, base = fsspec_module().core.url_to_fs(root)
        found = system.find(base) if _lists_at_once(system) else list(_walk(system, base))
        found = found or ([base] if system.isfile(base) else [])
    except HotlapError:
        raise
    except Exception as err:  # as in read_file
        raise _not_listed(root, err) from err
    return list(_below(base, found, root))


def list_folders(root: str) -> list[str]:
    """Names of the folders in ``root`` itself, empty ones too, sorted; hidden ones and packs left out."""
    if is_url(root):
        try:
            system, base = fsspec_module().core.url_to_fs(root)
            found = [path.rstrip("/") for path, is_folder in _entries(system, base) if is_folder]
        except HotlapError:
            raise
        except Exception as err:  # as in read_file
            raise _not_listed(root, err) from err
        names = _below(base, found, root)
    else:
        folders = [path for path in Path(root).iterdir() if path.is_dir()]
        names = {path.name for path in folders if not (path / MANIFEST).exists() and not (path / WORK).exists()}
    return sorted(name for name in names if not name.startswith("."))


def list_all(root: str) -> list[str]:
    """Names of all files below ``root``, hidden ones too, sorted, ``/`` between folders; [""] where it is a file.

    As in :func:`list_folder`, a server's ``%20`` is a space.
    """
    return sorted(_list_url(root) if is_url(root) else _list_here(root))


def list_folder(root: str, suffixes: tuple[str, ...]) -> list[str]:
    """Names of the files below ``root`` with these suffixes; hidden ones (``._a.jpg``) are no samples.

    A pipe or device of such a name is among them: as a row that cannot be packed.
    """
    names = _list_url(root) if is_url(root) else _list_here(root)
    return sorted(n for n in names if n.lower().endswith(suffixes) and not PurePosixPath(n).name.startswith("."))
