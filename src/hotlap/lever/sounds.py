"""Sounds through the cache: ``soundfile.read``, and the ``read`` of a ``soundfile.SoundFile`` that was opened by path.

A part of a WAV or FLAC file is cut from the whole, so that random crops of one file share one entry.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hotlap.lever.file_cache import FileCache
from hotlap.lever.readers import cached_reader, through
from hotlap.lever.sources import file_key

__all__ = ["cached_sound_read", "swap_sounds"]

_WHOLE_FILE_BYTES = 8 << 20
"""Sound files up to this size are decoded whole for a part of them."""
_EXACT_SEEK = ("WAV", "FLAC")
"""Formats in which reading a part gives the same samples as cutting the whole."""
_PART = frozenset(("frames", "start", "stop"))
_READ: dict[str, Any] = {"frames": -1, "dtype": "float64", "always_2d": False}
"""Arguments of ``SoundFile.read`` that are looked at, and their defaults."""
_DTYPES = ("float64", "float32", "int32", "int16")


def swap_sounds(cache: FileCache, module: ModuleType, swap: Callable[[Any, str, Any], None]) -> None:
    """Hand ``swap`` what stands in soundfile's place: owner, name, wrapper."""
    opened, file = OpenSounds(cache), module.SoundFile
    swap(module, "read", cached_sound_read(cache, opened.alone(module.read)))
    swap(file, "__init__", opened.opening(file.__init__))
    swap(file, "read", opened.reading(file.read))


def cached_sound_read(cache: FileCache, read: Callable[..., Any]) -> Callable[..., Any]:
    """``soundfile.read`` through the cache. A part of a WAV or FLAC file is cut from the whole, so that random crops
    of one file share one entry."""

    whole = cached_reader(cache, "soundfile", read, skip=("out",), streams=True)

    @functools.wraps(read)
    def reader(file: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and _PART.isdisjoint(kwargs):
            return whole(file, **kwargs)
        part: dict[str, Any] = {k: kwargs[k] for k in ("frames", "start", "stop") if k in kwargs}
        rest = {k: v for k, v in kwargs.items() if k not in part}
        if args or not part or set(rest) - {"dtype", "always_2d"} or not _part_of_file(file, part):
            return whole(file, *args, **kwargs)
        data, rate = whole(file, **rest)
        start, frames, stop = part.get("start", 0), part.get("frames", -1), part.get("stop")
        if start > len(data) or (stop is not None and stop < start):
            return read(file, **kwargs)
        end = stop if stop is not None else (start + frames if frames >= 0 else len(data))
        return data[start:end].copy(), rate

    return reader


def _part_of_file(file: Any, part: dict[str, Any]) -> bool:
    start, frames, stop = part.get("start", 0), part.get("frames", -1), part.get("stop")
    if not isinstance(file, str | os.PathLike) or os.path.splitext(str(file))[1][1:].upper() not in _EXACT_SEEK:
        return False
    if type(start) is not int or start < 0 or type(frames) is not int:
        return False
    if stop is not None and (type(stop) is not int or stop < 0 or frames >= 0):
        return False
    return _is_small(file)


def _is_small(file: Any) -> bool:
    try:
        return os.stat(file).st_size <= _WHOLE_FILE_BYTES
    except (OSError, ValueError):
        return False


class OpenSounds:
    """Wraps ``SoundFile.__init__`` and ``SoundFile.read``, and ``soundfile.read``, which uses both: inside of it they
    do as ever, so that nothing is kept twice. It has entries of its own, which spare the opening of the file too."""

    def __init__(self, cache: FileCache) -> None:
        self._cache = cache
        self._keys: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        """What each file held when it was opened."""
        self._inside = threading.local()

    def alone(self, read: Callable[..., Any]) -> Callable[..., Any]:
        """``soundfile.read``, whose ``SoundFile`` is not looked after."""

        @functools.wraps(read)
        def reader(*args: Any, **kwargs: Any) -> Any:
            self._inside.read = True
            try:
                return read(*args, **kwargs)
            finally:
                self._inside.read = False

        return reader

    def opening(self, init: Callable[..., None]) -> Callable[..., None]:
        """``SoundFile.__init__``: remembers what is opened."""

        @functools.wraps(init)
        def opener(sound: Any, *args: Any, **kwargs: Any) -> None:
            looked_after = not getattr(self._inside, "read", False)
            path = (args[0] if args else kwargs.get("file")) if looked_after else None
            before = file_key(path)
            init(sound, *args, **kwargs)
            if before is not None and sound.mode == "r" and file_key(path) == before:
                self._keys[sound] = before

        return opener

    def reading(self, read: Callable[..., Any]) -> Callable[..., Any]:
        """``SoundFile.read``: the whole file, or a part of a WAV or FLAC file, which is cut from the whole."""

        @functools.wraps(read)
        def reader(sound: Any, *args: Any, **kwargs: Any) -> Any:
            key = self._keys.get(sound)
            given = dict(zip(_READ, args, strict=False))
            if key is None or len(args) > len(_READ) or not kwargs.keys() <= _READ.keys() - given.keys():
                return read(sound, *args, **kwargs)
            frames, dtype, always_2d = (_READ | given | kwargs).values()
            if type(frames) is not int or dtype not in _DTYPES or sound.closed or not sound.seekable():
                return read(sound, *args, **kwargs)
            start = sound.tell()
            if (start or 0 <= frames < sound.frames) and not (sound.format in _EXACT_SEEK and _is_small(sound.name)):
                return read(sound, *args, **kwargs)
            try:
                data, end = self._whole(sound, read, key, dtype, bool(always_2d))
            except Exception:  # damaged, perhaps outside of what is asked for
                data, end = (), -1
            if len(data) != sound.frames or end != len(data):  # cut short: it ends in ways of its own
                sound.seek(start)
                return read(sound, *args, **kwargs)
            stop = len(data) if frames < 0 else min(start + frames, len(data))
            sound.seek(stop)
            return data if (start, stop) == (0, len(data)) else data[start:stop].copy()

        return reader

    def _whole(self, sound: Any, read: Callable[..., Any], key: str, dtype: str, always_2d: bool) -> tuple[Any, int]:
        """All samples, the caller's own, and where reading them leaves the file."""

        def decode() -> tuple[Any, int]:
            sound.seek(0)
            return read(sound, -1, dtype, always_2d), sound.tell()

        facts = (sound.format, sound.subtype, sound.endian, sound.samplerate, sound.channels, dtype, always_2d)
        found: tuple[Any, int] = through(self._cache, f"SoundFile|{key}|{facts}", decode)
        return found
