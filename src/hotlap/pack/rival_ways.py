"""Ways of the loading libraries that are installed here, to read the same rows by the same views.

Nothing is imported that is not installed. What fails is told in a line with its reason, and the others go on. Copies
for libraries that need them lie in a temporary folder, which is gone afterwards, also if all of it is interrupted.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.pack import rival_copies, rival_in_place
from hotlap.pack.rival_samples import Samples
from hotlap.pack.way import Reading, Way, said

__all__ = ["RIVALS", "Found", "Rival", "rivals_here"]

MOST_BYTES = 256 << 20
"""Of rows that are copied: many times what caches of processors hold, and written in seconds."""
MOST_ROWS = 50_000
"""Small rows cost a copy more than their bytes: a tar keeps 1 KB for each file."""
_OVERHEAD_BYTES = 1536
"""Of a value in the least compact copy, a tar: a header, and the rest of the last block."""
_SPARE = 1.2
"""Room on the disk as a multiple of what copies are reckoned to take."""
_LONGEST_FOLDER = 64
"""Letters. Workers hand over batches through sockets among the temporary files, whose paths have 107 bytes at most."""

Ways = Callable[[Any, str, Reading, Path | None], list[Way]]
"""(module, version, reading, folder of the copy) -> ways."""


@dataclass(frozen=True)
class Rival:
    """One library."""

    name: str
    distributions: tuple[str, ...]
    """Names that it is, or was, installed by."""
    module: str
    ways: Ways
    write: Callable[[Any, Reading, Path], None] | None = None
    """(module, reading, folder that is to be made): None where it reads the pack's own files."""

    def version(self) -> str | None:
        """None where it is not installed. A folder of the same name on the path is not it."""
        if find_spec(self.module.partition(".")[0]) is None:
            return None
        for name in self.distributions:
            with contextlib.suppress(metadata.PackageNotFoundError):
                return metadata.version(name)
        return None


RIVALS = (
    Rival("HF datasets", ("datasets",), "datasets", rival_in_place.hugging_ways),
    Rival("torchdata", ("torchdata",), "torchdata.nodes", rival_in_place.torchdata_ways),
    Rival("SPDL", ("spdl-core", "spdl"), "spdl.pipeline", rival_in_place.spdl_ways),
    Rival("WebDataset", ("webdataset",), "webdataset", rival_copies.webdataset_ways, rival_copies.write_webdataset),
    Rival("LitData", ("litdata",), "litdata", rival_copies.litdata_ways, rival_copies.write_litdata),
    Rival(
        "MosaicML Streaming", ("mosaicml-streaming",), "streaming", rival_copies.mosaic_ways, rival_copies.write_mosaic
    ),
)
_FFCV = ("FFCV is installed, but not timed: its files hold fields that its own compiled code has to know, which not "
         "every column of a pack is. bench/loader.py in Hotlap's repository times it.")  # fmt: skip


@dataclass
class Found:
    """What is here."""

    reading: Reading
    """What all ways have to read: fewer rows than the pack has where copies of them were written."""
    ways: list[Way] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    """With versions; those whose ways are there."""
    missing: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """Why something is not timed, a line each."""


@contextlib.contextmanager
def rivals_here(reading: Reading, tell: Callable[[str], None], copies: bool = True,
                rivals: Sequence[Rival] = RIVALS) -> Iterator[Found]:  # fmt: skip
    """Ways of every library that is installed, until the end of the block.

    ``tell`` is given a line before something is written; ``copies=False`` leaves out libraries that need a copy.
    """
    found = Found(reading)
    versions = {rival.name: version for rival in rivals if (version := rival.version()) is not None}
    found.missing = [rival.name for rival in rivals if rival.name not in versions]
    here = [rival for rival in rivals if rival.name in versions]
    if find_spec("ffcv") is not None:
        found.told.append(_FFCV)
    writing = [rival.name for rival in here if rival.write]
    if writing and (reason := "--no-copies" if not copies else _cut(found, len(writing))):
        found.told.append(f"{', '.join(writing)}: not timed, no copies of the pack in their form ({reason})")
        here = [rival for rival in here if rival.write is None]
        writing = []
    with contextlib.ExitStack() as stack:
        folder = None
        if writing:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hotlap-bench-")))
            stack.enter_context(_temporary_files_in(folder))
            stack.callback(gc.collect)  # ends the workers of loaders that refer to themselves: they read the copies
            tell(f"writing {found.reading.rows:,} rows for {', '.join(writing)} to {folder}, removed afterwards")
        for rival in here:
            _add(found, rival, versions[rival.name], folder)
        yield found


@contextlib.contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Makes ``folder`` the one for temporary files: workers that their library kills leave some."""
    before = tempfile.tempdir
    if len(str(folder)) < _LONGEST_FOLDER:
        tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _cut(found: Found, count: int) -> str:
    """Reduce what is read to rows of which ``count`` copies can be written, or say why there are none."""
    reading = found.reading
    sizes = np.cumsum(Samples(reading.pack, reading.views).sizes(reading.pack)[: reading.rows])
    rows = min(MOST_ROWS, int(np.searchsorted(sizes, MOST_BYTES, "right")))
    if rows < min(reading.batch, reading.rows):
        return f"{MOST_BYTES:,} bytes hold {rows} rows, less than a batch"
    values = rows * len(reading.views)
    needed = int(count * (int(sizes[rows - 1]) + values * _OVERHEAD_BYTES) * _SPARE)
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if needed > free:
        return f"they may take {needed:,} bytes, {tempfile.gettempdir()} has {free:,}; TMPDIR names another folder"
    found.reading = replace(reading, rows=min(rows, reading.rows))
    return ""


def _add(found: Found, rival: Rival, version: str, parent: Path | None) -> None:
    folder = parent / rival.module if parent is not None and rival.write else None
    os.environ.setdefault("LITDATA_DISABLE_VERSION_CHECK", "1")  # it would ask a server when imported
    try:
        with contextlib.redirect_stdout(sys.stderr):  # some greet
            library = import_module(rival.module)
            if rival.write is not None and folder is not None:
                rival.write(library, found.reading, folder)
            found.ways += rival.ways(library, version, found.reading, folder)
        found.libraries.append(f"{rival.name} {version}")
    except Exception as err:  # anybody's code: whatever it raises is told, and the other libraries are timed
        found.told.append(f"{rival.name} {version}: not timed ({said(err)})")
