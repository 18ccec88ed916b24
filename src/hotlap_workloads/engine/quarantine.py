"""Unreadable samples: an error that names the file, or, when asked, a list of them and an epoch without them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hotlap_workloads.engine.task import Context
from hotlap_workloads.errors import DataError

__all__ = ["FILE", "quarantined"]

FILE = "quarantine.txt"


def quarantined(paths: Iterable[Path], read: Callable[[Path], object], context: Context) -> set[Path]:
    """Read every file once; those that cannot be read are listed in ``quarantine.txt`` (path, tab, reason).

    The first rank writes the list; all ranks find the same. Nothing is read or listed where nobody asked for it.
    """
    if not context.quarantine:
        return set()
    files = sorted(set(paths))

    def reason(path: Path) -> tuple[Path, str] | None:
        try:
            read(path)
        except DataError as err:
            return path, err.what
        return None

    with ThreadPoolExecutor() as pool:
        bad = [found for found in pool.map(reason, files) if found is not None]
    if context.ranks.first:
        (context.out / FILE).write_text("".join(f"{path}\t{what}\n" for path, what in bad), encoding="utf-8")
    context.say(f"{len(bad)} of {len(files)} files are left out: {FILE}.")
    return {path for path, _ in bad}
