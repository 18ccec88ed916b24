"""Each file decoded once, for this process and its loader workers."""

import atexit as _atexit
import hashlib as _hashlib
import io as _io
import os as _os
import pickle as _pickle
import shutil as _shutil
import tempfile as _tempfile
import threading as _threading
import types as _types
from typing import Any

__all__ = ["decode_once"]


def _decoded_folder() -> str:
    """A folder in memory that worker processes inherit; the process that made it removes it."""
    if "DECODED_FOLDER" not in _os.environ:
        memory = "/dev/shm" if _os.access("/dev/shm", _os.W_OK) else None
        folder, owner = _tempfile.mkdtemp(prefix="decoded-", dir=memory), _os.getpid()
        _os.environ["DECODED_FOLDER"] = folder

        def remove() -> None:
            if _os.getpid() == owner:
                _shutil.rmtree(folder, ignore_errors=True)

        _atexit.register(remove)
    return _os.environ["DECODED_FOLDER"]


DECODED_FOLDER = _decoded_folder()


class DecodedArrays(dict):  # type: ignore[type-arg]
    """What an .npz archive holds, decoded; it is used as ``numpy.load`` gives it."""

    files = property(list)
    f = property(lambda self: _types.SimpleNamespace(**self))

    def __enter__(self) -> "DecodedArrays":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        """Nothing is open."""


def _content(read: Any, source: Any) -> Any:
    """What tells apart the contents of files, by path or open, and of bytes in memory; None: nothing does."""
    if isinstance(source, (str, _os.PathLike)):
        seen = _os.stat(source)
        return _os.path.abspath(source), seen.st_mtime_ns, seen.st_size
    if isinstance(source, _io.BufferedReader) and source.seekable():  # a pipe is not
        seen = _os.fstat(source.fileno())
        return seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size, source.tell()
    if isinstance(source, _io.BytesIO):
        return _hashlib.blake2b(source.getvalue()).digest(), source.tell()
    return _hashlib.blake2b(bytes(source)).digest() if read.__qualname__ in ("imdecode", "decode_jpeg") else None


def _has_room(max_bytes: int, pages: int, used: str) -> bool:
    """Whether so many pages fit: below the bound, of which each process that torchrun starts here (they have a folder
    each) takes its part, and with a quarter of the memory's file system left to the loader's own batches."""
    share = max_bytes // 4096 // int(_os.environ.get("LOCAL_WORLD_SIZE") or 1)
    space = _shutil.disk_usage(DECODED_FOLDER)
    left = not DECODED_FOLDER.startswith("/dev/shm/") or space.free - 4096 * pages >= space.total // 4
    return left and (_os.path.getsize(used) if _os.path.exists(used) else 0) + pages <= share


def decode_once(max_bytes: int, read: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
    """``read(source, ...)``, kept in memory up to ``max_bytes`` on a machine; each caller gets a copy of its own."""
    try:
        content = _content(read, source)
    except (OSError, ValueError):  # a file that is missing or closed: the reader says so in its own way
        content = None
    if content is None:
        return read(source, *args, **kwargs)
    key = repr((read.__module__, read.__qualname__, content, args, kwargs))
    kept = _os.path.join(DECODED_FOLDER, _hashlib.blake2b(key.encode(), digest_size=16).hexdigest())
    if _os.path.exists(kept):
        with open(kept, "rb") as file:
            value, end = _pickle.load(file)
        if end is not None:  # where reading would have left an open file
            source.seek(end)
        return value
    value = read(source, *args, **kwargs)
    if hasattr(value, "files") and hasattr(value, "zip"):  # an .npz archive decodes each array when it is asked for
        value = DecodedArrays(value)
    if hasattr(value, "load") and hasattr(value, "copy"):  # an image that is read when it is first looked at
        value.load()
        value = value.copy()
    end = source.tell() if hasattr(source, "tell") and not source.closed else None
    data = _pickle.dumps((value, end), protocol=_pickle.HIGHEST_PROTOCOL)
    used = _os.path.join(DECODED_FOLDER, "used")  # as long as what is kept, in pages of 4096 bytes
    pages = len(data) // 4096 + 1
    part = f"{kept}.{_os.getpid()}.{_threading.get_ident()}"
    try:
        if _has_room(max_bytes, pages, used):
            with open(part, "wb") as file:
                file.write(data)
            _os.replace(part, kept)
            with open(used, "ab") as file:
                file.write(bytes(pages))
    except OSError:  # no room: this file is decoded again next time
        if _os.path.exists(part):
            _os.unlink(part)
    return value
