"""Which files came with Python or with an installed package. All others are the user's."""

from __future__ import annotations

import os
import sysconfig
from functools import lru_cache

__all__ = ["is_installed"]

_FOLDERS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
"""Wherever they lie: ``pip install --user``, a system's Python below a virtual environment, Debian's own folder."""


def _roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    roots = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib") if paths.get(name)}
    roots |= {os.path.realpath(root) for root in roots}
    roots.add(os.path.dirname(os.path.abspath(os.__file__)))
    return tuple(root.rstrip(os.sep) + os.sep for root in roots)


_ROOTS = _roots()


@lru_cache(maxsize=4096)
def is_installed(path: str) -> bool:
    """Whether this is a file of the standard library or of an installed package. ``path`` is absolute."""
    return path.startswith(_ROOTS) or any(folder in path for folder in _FOLDERS)
