"""The packages that a command's Python would import, by the names of their metadata folders: nothing is imported."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["find_sites", "read_packages"]

_NAMED = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+?)(?:-py\d[\d.]*)?\.(?:dist-info|egg-info)$")
"""``torch-2.13.0+cpu.dist-info``, ``legacy-1.0-py3.11.egg-info``: the binary distribution format and its forerunner."""

_FOLDERS = ("site-packages", "dist-packages")
_LIBRARIES = ("lib/python3*", "local/lib/python3*", "Lib")
"""Below an installation's prefix: POSIX, Debian's own, Windows."""


def find_sites(command: Sequence[str]) -> list[Path]:
    """Folders in which packages for the command's Python are installed.

    Hotlap's own where the command runs in the same environment. A program elsewhere (``/opt/venv/bin/torchrun``) has
    them beside it; of a shell script, those of the ``python`` that it would find are taken. What is no program (a
    notebook's cell) runs in this process.
    """
    words = list(command[:1])
    if not words or shutil.which(words[0]) is None:
        words = [sys.executable]
    elif not Path(words[0]).name.startswith("python"):
        words += ["python", "python3"]
    for word in words:
        program = shutil.which(word)
        if program is None:
            continue
        prefix = Path(os.path.abspath(program)).parent.parent
        if prefix == Path(sys.prefix):
            return [Path(entry) for entry in sys.path if Path(entry).name in _FOLDERS]
        sites = [site for name in _FOLDERS for lib in _LIBRARIES for site in prefix.glob(f"{lib}/{name}")]
        if sites:
            return sorted(sites)
    return []


def read_packages(sites: Iterable[Path]) -> dict[str, str]:
    """Version by normalised name (``typing-extensions``), alphabetically; the first folder that has a package counts.

    Folders that are not there or cannot be read hold none.
    """
    found: dict[str, str] = {}
    for site in sites:
        try:
            names = sorted(os.listdir(site))
        except OSError:
            continue
        for name in names:
            match = _NAMED.match(name)
            if match is not None:
                found.setdefault(re.sub(r"[-_.]+", "-", match["name"]).lower(), match["version"])
    return dict(sorted(found.items()))
