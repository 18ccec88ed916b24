"""The OpenMP library that torch has loaded: another one would bring a second team, which spins beside torch's."""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["openmp", "team_functions"]

_TEAM = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
"""In the order of ``set_team`` in team.c. GNU's interface, which LLVM's and Intel's libraries have too."""
_NAME = re.compile(r"lib(gomp|iomp5|omp)([-.][-.\w]*)?\.so[.\d]*")
_ORDER = ("gomp", "iomp5", "omp")


def openmp() -> ctypes.CDLL | None:
    """None while torch is not imported (packing does without), without Linux or without an OpenMP library."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "get_num_threads") or torch.__file__ is None:  # not, or not yet whole
        return None
    return _loaded(Path(torch.__file__).parent)


@functools.cache
def _loaded(torch: Path) -> ctypes.CDLL | None:
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    path = _of_torch((line.split(maxsplit=5)[5] for line in maps if "/" in line), torch)
    return None if path is None else ctypes.CDLL(path)


def _of_torch(files: Iterable[str], torch: Path) -> str | None:
    """Of the files in memory, the OpenMP library of torch, a package that lies in ``torch``.

    Other packages bring copies of their own (scikit-learn's): the one that lies with torch goes first.
    """
    found: dict[str, tuple[bool, int]] = {}
    for file in files:
        name = _NAME.fullmatch(Path(file).name)
        if name is not None:
            apart = not any(Path(file).is_relative_to(place) for place in (torch, torch.with_name("torch.libs")))
            found[file] = apart, _ORDER.index(name[1])
    return min(found, key=lambda file: found[file], default=None)


def team_functions() -> list[int | None]:
    """Addresses of the functions that team.c calls; empty where there is no such library."""
    library = openmp()
    try:
        return [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _TEAM] if library else []
    except AttributeError:  # a library without GNU's interface
        return []
