"""Which files a batch is made of, and from which lines: a few batches of each process are looked into, then none.

During such a batch ``open`` and the known parsers and containers stand replaced; before and after it nothing is, so
that the other batches cost nothing. Told once per look, in totals: ``setting`` rows named ``file_reads``.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import os
import sys
import time
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.load_time import MeterHolder
from hotlap.probe.mounts import mount_kinds
from hotlap.probe.own_frames import strip
from hotlap.probe.recorder import Recorder
from hotlap.records.rows import Setting

__all__ = ["LOOK_AT", "OPENERS", "install"]

LOOK_AT = frozenset((2, 9, 40))
"""Batches of a pass (from 0) that are looked into; the first ones warm caches of the script's own."""
LOOKS = 6
"""Looks in one process."""
LINES = 40
"""Lines told, the most costly first."""

OPENERS: tuple[tuple[str, str, str], ...] = (
    ("numpy", "", "load"),
    ("numpy", "", "fromfile"),
    ("numpy", "", "loadtxt"),
    ("numpy", "", "genfromtxt"),
    ("json", "", "load"),
    ("csv", "", "reader"),
    ("pickle", "", "load"),
    ("torch", "", "load"),
    ("wave", "", "open"),
    ("soundfile", "", "read"),
    ("soundfile", "SoundFile", "__init__"),
    ("PIL.Image", "", "open"),
    ("cv2", "", "imread"),
    ("pandas", "", "read_csv"),
    ("pandas", "", "read_parquet"),
    ("h5py", "File", "__init__"),
    ("zipfile", "ZipFile", "__init__"),
    ("tarfile", "", "open"),
    ("sqlite3", "", "connect"),
    ("xml.etree.ElementTree", "", "parse"),
)
"""Module, class ("" for functions of the module), name; of modules that the script has imported."""


class _Line:
    """Calls of one operation from one line of the user's."""

    __slots__ = ("bytes", "calls", "files", "ns", "paths")

    def __init__(self) -> None:
        self.calls = self.ns = self.files = self.bytes = 0
        self.paths: set[str] = set()
        """Of the batch that is being looked into."""


class Looks:
    """Totals of one process, and the batch that is being looked into."""

    def __init__(self, rec: Recorder, holder: MeterHolder) -> None:
        self._rec = rec
        self._holder = holder
        self._clear()

    def _clear(self) -> None:
        self._pid = os.getpid()
        self.left = LOOKS
        self._lines: dict[tuple[int, str], _Line] = {}
        self._batches = self._samples = self._wall = 0
        self._mounts: dict[str, int] = {}
        self._thread = 0
        self._inside = False

    def wanted(self) -> bool:
        """Whether this process has looks left and reads for training."""
        if os.getpid() != self._pid:
            self._clear()
        return self.left > 0 and not self._thread and not self._holder.meter.is_validation()

    def look(self, fetch: Callable[[Any], Any], index: Any) -> Any:
        """Run ``fetch(index)`` with the openers replaced."""
        self.left -= 1
        self._thread = get_ident()
        undo: list[tuple[Any, str, Any, Any]] = []
        with contextlib.suppress(Exception):  # what a script put there may be no function: the rest is looked into
            self._replace(undo)
        begun = time.monotonic_ns()
        try:
            return fetch(index)
        finally:
            wall = time.monotonic_ns() - begun
            for owner, name, own, ours in undo:
                if vars(owner).get(name) is ours:
                    setattr(owner, name, own)
            self._thread = 0
            self._tell(wall, len(index) if type(index) is list else 1)

    def _replace(self, undo: list[tuple[Any, str, Any, Any]]) -> None:
        places: list[tuple[Any, str, str]] = [(builtins, "open", "open"), (io, "open", "open")]
        for module, owner, name in OPENERS:
            found = sys.modules.get(module)
            target = getattr(found, owner, None) if owner else found
            if target is not None:
                places.append((target, name, f"{module}.{owner or name}"))
        for target, name, op in places:
            own = vars(target).get(name)
            if callable(own):
                ours = self._watched(own, op)
                setattr(target, name, ours)
                undo.append((target, name, own, ours))

    def _watched(self, original: Callable[..., Any], op: str) -> Callable[..., Any]:
        clock = time.monotonic_ns
        skip = int(getattr(original, "__name__", "") == "__init__")  # a partial has no name

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                if self._inside or get_ident() != self._thread:
                    return original(*args, **kwargs)
                self._inside = True
                begun = clock()
                try:
                    return original(*args, **kwargs)
                finally:
                    spent = clock() - begun
                    self._inside = False
                    file = args[skip] if len(args) > skip else next(iter(kwargs.values()), None)
                    mapped = kwargs.get("mmap_mode") or kwargs.get("mmap")
                    self._count(f"{op} mapped" if mapped else op, file, spent)
            except BaseException as err:
                strip(err)
                raise

        return call

    def _count(self, op: str, file: Any, spent: int) -> None:
        frames = self._rec.frames
        frame = frames.user_frame(sys._getframe(2))
        if frame is None:
            return
        line = self._lines.setdefault((frames.number(frame), op), _Line())
        line.calls += 1
        line.ns += spent
        name = file if isinstance(file, str | os.PathLike) else getattr(file, "name", None)
        path = os.fspath(name) if isinstance(name, str | os.PathLike) else None
        line.paths.add(path if isinstance(path, str) else f"?{line.calls}")  # what has no name is another each time

    def _tell(self, wall: int, samples: int) -> None:
        self._batches += 1
        self._samples += samples
        self._wall += wall
        devices: list[int] = []
        seen: set[str] = set()
        for line in self._lines.values():
            line.files += len(line.paths)
            for path in line.paths:
                try:
                    facts = os.stat(path)
                except (OSError, ValueError):
                    continue  # a name that is no file here
                line.bytes += facts.st_size
                if path not in seen:
                    seen.add(path)
                    devices.append(facts.st_dev)
            line.paths = set()
        for kind, count in mount_kinds(devices).items():
            self._mounts[kind] = self._mounts.get(kind, 0) + count
        ranked = sorted(self._lines.items(), key=lambda pair: -pair[1].ns)[:LINES]
        lines = [[frame, op, line.calls, line.files, line.ns, line.bytes] for (frame, op), line in ranked]
        value = {
            "batches": self._batches, "samples": self._samples, "w": self._wall, "mounts": dict(self._mounts),
            "lines": lines,
        }  # fmt: skip
        self._holder.meter.emit(Setting("file_reads", value))


def install(ctx: Context, holder: MeterHolder) -> None:
    """Give each new fetcher a ``fetch`` of its own that leaves after the last look."""
    looks = Looks(ctx.rec, holder)
    base = ctx.torch.utils.data._utils.fetch._BaseDatasetFetcher
    init = base.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if looks.wanted():
            self.fetch = _counting(weakref.ref(self), looks, ctx)

    ctx.undo.replace(base, "__init__", __init__)


def _counting(ref: Any, looks: Looks, ctx: Context) -> Callable[[Any], Any]:
    batch = -1

    def fetch(index: Any) -> Any:
        nonlocal batch
        batch += 1
        fetcher = ref()
        plain = type(fetcher).fetch.__get__(fetcher)
        if batch >= max(LOOK_AT) or looks.left <= 0:
            vars(fetcher).pop("fetch", None)
        try:
            if batch in LOOK_AT and looks.wanted():
                return looks.look(plain, index)
            return plain(index)
        except BaseException as err:
            strip(err)
            raise

    return fetch
