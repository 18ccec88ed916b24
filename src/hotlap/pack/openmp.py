"""The OpenMP library that torch has loaded: another one would bring a second team, which spins beside torch's."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

__all__ = ["openmp", "team_functions"]

_TEAM = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
"""In the order of ``set_team`` in team.c. GNU's interface, which LLVM's and Intel's libraries have too."""


@functools.cache
def openmp() -> ctypes.CDLL | None:
    """To be asked once torch is imported. None without Linux or without an OpenMP library."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for name in ("libgomp", "libiomp", "libomp"):
        for line in maps:
            if f"/{name}" in line:
                return ctypes.CDLL(line.split(maxsplit=5)[5])
    return None


def team_functions() -> list[int | None]:
    """Addresses of the functions that team.c calls; empty where there is no such library."""
    library = openmp()
    try:
        return [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _TEAM] if library else []
    except AttributeError:  # a library without GNU's interface
        return []
