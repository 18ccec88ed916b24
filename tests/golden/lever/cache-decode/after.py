import atexit
import hashlib
import os
import pickle
import shutil
import tempfile
import threading
import types
from typing import Any
from PIL import Image
from torch.utils.data import Dataset


def _decoded_folder() -> str:
    """A folder in memory that worker processes inherit; the process that made it removes it."""
    if "DECODED_FOLDER" not in os.environ:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        folder, owner = tempfile.mkdtemp(prefix="decoded-", dir=memory), os.getpid()
        os.environ["DECODED_FOLDER"] = folder

        def remove() -> None:
            if os.getpid() == owner:
                shutil.rmtree(folder, ignore_errors=True)

        atexit.register(remove)
    return os.environ["DECODED_FOLDER"]


DECODED_FOLDER = _decoded_folder()


class DecodedArrays(dict):  # type: ignore[type-arg]
    """What an .npz archive holds, decoded; it is used as ``numpy.load`` gives it."""

    files = property(list)
    f = property(lambda self: types.SimpleNamespace(**self))

    def __enter__(self) -> "DecodedArrays":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        """Nothing is open."""


def decode_once(max_bytes: int, read: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
    """``read(path, …)``, kept in memory up to ``max_bytes`` in all; each caller gets a copy of its own."""
    if not isinstance(path, (str, os.PathLike)):
        return read(path, *args, **kwargs)
    seen = os.stat(path)
    key = repr(
        (read.__module__, read.__qualname__, os.path.abspath(path), seen.st_mtime_ns, seen.st_size, args, kwargs)
    )
    kept = os.path.join(DECODED_FOLDER, hashlib.blake2b(key.encode(), digest_size=16).hexdigest())
    if os.path.exists(kept):
        with open(kept, "rb") as file:
            return pickle.load(file)
    value = read(path, *args, **kwargs)
    if hasattr(value, "files") and hasattr(value, "zip"):  # an .npz archive decodes each array when it is asked for
        value = DecodedArrays(value)
    if hasattr(value, "load") and hasattr(value, "copy"):  # an image that is read when it is first looked at
        value.load()
        value = value.copy()
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    used = os.path.join(DECODED_FOLDER, "used")  # as long as what is kept, in pages of 4096 bytes
    pages = len(data) // 4096 + 1
    if (os.path.getsize(used) if os.path.exists(used) else 0) + pages <= max_bytes // 4096:
        part = f"{kept}.{os.getpid()}.{threading.get_ident()}"
        try:
            with open(part, "wb") as file:
                file.write(data)
            os.replace(part, kept)
            with open(used, "ab") as file:
                file.write(bytes(pages))
        except OSError:  # no room: this file is decoded again next time
            if os.path.exists(part):
                os.unlink(part)
    return value


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, index):
        return decode_once(4294967296, Image.open, self.paths[index]).convert("RGB")
