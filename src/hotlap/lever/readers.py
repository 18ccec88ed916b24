"""Caching wrappers of the well-known readers: same arguments, same results, each result the caller's own copy."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

from hotlap.lever.file_cache import FileCache
from hotlap.lever.sample_codec import copied, pack, unpack
from hotlap.lever.sources import bytes_key, file_key, seek, stream_key, tell

__all__ = ["cached_decoder", "cached_image_load", "cached_reader", "kept", "through"]

_MANNERS = 256
"""Ways of calling a reader that are remembered (a script has one or two)."""
_IMAGE_FORMATS = ("JPEG", "PNG", "BMP", "PPM")
_IMAGE_MODES = ("L", "RGB", "RGBA", "CMYK")
_PLACE = struct.Struct("<q")


def _simple(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_simple(v) for v in value)
    return value is None or isinstance(value, str | int | float | bool | type)


def kept(cache: FileCache, key: str) -> Any:
    """What the cache holds under ``key``, a copy of the caller's own; None without it."""
    value = cache.value(key)
    if value is not None:
        return copied(value)
    data = cache.get(key)
    return None if data is None else unpack(data)


def through(cache: FileCache, key: str, read: Callable[[], Any]) -> Any:
    """What the cache holds under ``key``, a copy of the caller's own; else what ``read`` gives, kept if it can be."""
    found = kept(cache, key)
    if found is not None:
        return found
    value = read()
    packed = pack(value)
    if packed is not None and not cache.keep_value(key, copied(value), len(packed)):
        cache.put(key, packed)
    return value


class _Manners:
    """Ways of calling a reader, as text. The same few come again."""

    def __init__(self, kind: str, skip: tuple[str, ...]) -> None:
        self._kind, self._skip = kind, skip
        self._known: dict[Any, str | None] = {}

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """None when such a call is not cached."""
        known = self._known
        try:
            how = (args, tuple(kwargs.items()))
            if how in known:
                return known[how]
        except TypeError:  # an argument that cannot be hashed
            return None
        plain = all(_simple(v) for v in args) and all(_simple(v) for v in kwargs.values())
        text = f"{self._kind}|{args!r}{sorted(kwargs.items())!r}"
        found = text if plain and not any(kwargs.get(name) for name in self._skip) else None
        if plain and len(known) < _MANNERS:
            known[how] = found
        return found


def cached_reader(
    cache: FileCache, kind: str, read: Callable[..., Any], skip: tuple[str, ...] = (), streams: bool = False
) -> Callable[..., Any]:
    """``read(path, ...)`` through the cache, and with ``streams`` ``read(open file or BytesIO, ...)``. Calls with a
    keyword of ``skip`` that is not None, or with arguments that are not plain values, go to ``read`` itself."""

    manners = _Manners(kind, skip)

    @functools.wraps(read)
    def reader(*args: Any, **kwargs: Any) -> Any:
        how = manners.of(args[1:], kwargs) if args else None
        if how is None:
            return read(*args, **kwargs)
        key = file_key(args[0])
        if key is not None:
            return through(cache, f"{how}|{key}", lambda: read(*args, **kwargs))
        key = stream_key(args[0]) if streams else None
        if key is None:
            return read(*args, **kwargs)
        stream = args[0]
        value, end = through(cache, f"{how}|{key}|at {tell(stream)}", lambda: (read(*args, **kwargs), tell(stream)))
        seek(stream, end)
        return value

    return reader


def cached_decoder(cache: FileCache, kind: str, decode: Callable[..., Any]) -> Callable[..., Any]:
    """``decode(encoded bytes, ...)`` through the cache, as ``cached_reader``."""

    manners = _Manners(kind, ())

    @functools.wraps(decode)
    def decoder(*args: Any, **kwargs: Any) -> Any:
        how = manners.of(args[1:], kwargs) if args else None
        key = bytes_key(args[0]) if how is not None else None
        if key is None:
            return decode(*args, **kwargs)
        return through(cache, f"{how}|{key}", lambda: decode(*args, **kwargs))

    return decoder


def cached_image_load(cache: FileCache, image_module: Any, load: Callable[..., Any]) -> Callable[..., Any]:
    """``ImageFile.load`` through the cache, for images of files and of bytes in memory, in a format of one frame and in
    a plain mode. What is kept begins with where decoding left the file, which may be the caller's own."""

    @functools.wraps(load)
    def loader(self: Any, *args: Any, **kwargs: Any) -> Any:
        key = _image_key(self)
        if key is None or args or kwargs:
            return load(self)
        data, stream = cache.get(key), self.fp
        if data is None:
            result = load(self)
            cache.put(key, _PLACE.pack(tell(stream)) + self.tobytes())
            return result
        seek(stream, _PLACE.unpack_from(data)[0])
        self.im = image_module.frombytes(self.mode, self.size, bytes(memoryview(data)[_PLACE.size :])).im
        self.tile = []
        self.readonly = 0
        if getattr(self, "_exclusive_fp", False) and getattr(self, "_close_exclusive_fp_after_loading", False):
            self.fp.close()
        self.fp = None
        return self.im.pixel_access(self.readonly)

    return loader


def _image_key(image: Any) -> str | None:
    """What the decoded pixels depend on; draft mode and its scale stand in size, mode and tile."""
    if not image.tile or image.fp is None or image.format not in _IMAGE_FORMATS:
        return None
    if image.mode not in _IMAGE_MODES or getattr(image, "is_animated", False):
        return None
    if image.format == "PNG" and ("transparency" in image.info or getattr(image, "_text", None) is not None):
        return None
    scale = getattr(image, "decoderconfig", ()), getattr(image, "decodermaxblock", 0)
    key = stream_key(image.fp) or file_key(getattr(image, "filename", ""))
    return None if key is None else f"PIL|{key}|{image.format}|{image.mode}|{image.size}|{image.tile!r}|{scale}"
