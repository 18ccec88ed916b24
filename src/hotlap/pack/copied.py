"""URLs of files that hold many rows each (tars, Parquet, RecordIO, arrays): read here and there, so copied first.

The copy lies in the folder of the pack that is made of it, and is removed once that is whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hotlap.pack.appending import check_pack
from hotlap.pack.lock import locked
from hotlap.pack.manifest import WORK
from hotlap.pack.plan_parts import check_new
from hotlap.pack.sources import Source, SourceOptions, is_on_disk_alone, names_rows, open_source
from hotlap.pack.sources.listing import list_top
from hotlap.pack.sources.read import exists, inside, is_url, named
from hotlap.pack.sources.webdataset import expand_braces
from hotlap.pack.staging import stage

__all__ = ["source_of"]

COPIES = f"{WORK}/source"

Progress = Callable[[int, int], None]
"""Called now and then with (bytes copied, bytes in all) of one file."""


@contextmanager
def source_of(
    spec: str,
    folder: str | Path,
    options: SourceOptions | None = None,
    append: bool = False,
    progress: Progress | None = None,
) -> Iterator[Source]:
    """:func:`hotlap.pack.open_source` for a pack in ``folder``, of URLs of any kind too.

    What had to be copied stays where packing fails, so that the same call goes on with it. Raises HotlapError.
    """
    files = _files(spec) if is_url(spec) else []
    if not files:
        yield open_source(spec, options)
        return
    target = Path(folder).resolve()
    (check_pack if append else check_new)(target)  # before anything is copied
    is_new = not target.exists()
    copies = target / COPIES
    place, name = _split(spec)
    try:
        with locked(target):
            for url in files:
                (below,) = named(place, [url[len(place) :]])
                stage(url, (copies / below).parent, progress)
    finally:
        if is_new and target.exists() and not any(target.iterdir()):
            target.rmdir()
    (below,) = named(place, [name])
    yield _Copied(open_source(str(copies / below), options), spec, f"{copies}/", place)
    with locked(target):
        shutil.rmtree(copies)


def _split(spec: str) -> tuple[str, str]:
    """The URL of the folder that holds all files, or their folder, with its last slash; and what follows."""
    end = spec.rstrip("/").split("{")[0].rindex("/") + 1
    return spec[:end], spec[end:]


def _files(spec: str) -> list[str]:
    """URLs of all that is to be copied; none where rows are read one by one. Of RecordIO the index too, where there is
    one; of a folder its Parquet."""
    if not is_on_disk_alone(spec):
        names = [] if names_rows(spec) else [name for name in list_top(spec) if name.endswith(".parquet")]
        return [inside(spec, name) for name in names]
    found = expand_braces(spec) if spec.lower().endswith(".tar") else [spec]
    indexes = [url[: -len("rec")] + "idx" for url in found if url.lower().endswith(".rec")]
    return found + [url for url in indexes if exists(url)]


class _Copied:
    """A source that is called by the place it was copied from."""

    def __init__(self, source: Source, spec: str, here: str, there: str) -> None:
        self._source, self._here, self._there = source, here, there
        self.ragged = source.ragged
        self.metadata: dict[str, Any] = {**source.metadata, "source": spec}

    def __len__(self) -> int:
        return len(self._source)

    def name(self, index: int) -> str:
        return self._source.name(index).replace(self._here, self._there)

    def row(self, index: int) -> dict[str, Any]:
        return self._source.row(index)

    def fingerprint(self) -> str:
        return self._source.fingerprint()
