"""The optional kernel: gather, mirror, convert, normalise and lay out in one pass, half the work of several in torch.

``fused.c`` is compiled by the machine's own C compiler (the one that torch.compile needs too), once, into the user's
cache folder. Nobody waits for that: batches are made in torch until it is there, and with the same bits after. Without
a compiler, or with HOTLAP_FUSED=0, all is torch; :func:`state` says which.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
import threading
import zlib
from pathlib import Path

import numpy as np
import torch

from hotlap.pack.reader import Indices

__all__ = ["pixels", "planes", "ready", "sounds", "state"]

_SOURCE = Path(__file__).with_name("fused.c")
_FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")
"""No contraction: a product and a sum rounded apart, as torch rounds them."""
_TIME_LIMIT_S = 60

Numbers = tuple[torch.Tensor | None, torch.Tensor | None]
"""Scale and shift of each channel; None: values stay as they are."""

_lock = threading.Lock()
_library: ctypes.CDLL | None = None
_state = "not asked for"


def state() -> str:
    """``ready``, ``compiling``, or why there is no kernel."""
    return _state


def ready(wait: bool = False) -> bool:
    """Whether the kernel can be called. The first call begins to compile it where it is not there yet."""
    global _state
    if _library is None and _state == "not asked for":
        with _lock:
            if _state == "not asked for":
                _begin()
    if wait and _state == "compiling":
        _compiling().join()
    return _library is not None


def _begin() -> None:
    global _state
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if os.environ.get("HOTLAP_FUSED") == "0":
        _state = "switched off (HOTLAP_FUSED=0)"
    elif _path().exists():
        _open()
    elif compiler is None:
        _state = "no C compiler"
    else:
        _state = "compiling"
        _compiling().start()


@functools.cache
def _compiling() -> threading.Thread:
    return threading.Thread(target=_compile, name="hotlap-pack-compile", daemon=True)


@functools.cache
def _path() -> Path:
    """Another name for another source, compiler flags or processor: a home folder may be shared by many machines."""
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        info = ""
    processor = "".join(line for line in info.splitlines() if line.startswith(("flags", "model name", "Features")))
    crc = zlib.crc32(_SOURCE.read_bytes() + repr(_FLAGS).encode() + processor.encode())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "hotlap" / f"fused-{crc:08x}.so"


def _compile() -> None:
    global _state
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "cc")
    try:
        _path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_path().parent) as folder:
            made = Path(folder, "fused.so")
            done = subprocess.run([compiler, *_FLAGS, "-o", str(made), str(_SOURCE)], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=_TIME_LIMIT_S, check=False)  # fmt: skip
            if done.returncode:
                _state = f"{compiler} failed: {(done.stderr.strip().splitlines() or ['no message'])[0]}"
                return
            os.replace(made, _path())
        _open()
    except (OSError, subprocess.TimeoutExpired) as err:
        _state = f"cannot be compiled: {err}"


def _open() -> None:
    global _library, _state
    try:
        library = ctypes.CDLL(str(_path()))
    except OSError as err:
        _state = f"cannot be loaded: {err}"
        return
    number, place, real = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
    library.planes_to_planes.argtypes = [place, place, *[number] * 7, place, place, ctypes.c_int, place]
    for function in (library.pixels_to_pixels, library.pixels_to_planes):
        function.argtypes = [place, place, *[number] * 6, place, place, ctypes.c_int, place]
    library.sounds.argtypes = [place, place, number, number, real, place]
    for function in (library.planes_to_planes, library.pixels_to_pixels, library.pixels_to_planes, library.sounds):
        function.restype = None
    _library, _state = library, "ready"


def planes(memory: torch.Tensor, starts: Indices, flipped: int, shape: tuple[int, int, int], strides: tuple[int, int],
           numbers: Numbers, out: torch.Tensor) -> None:  # fmt: skip
    """Windows of (channel, height, width) of uint8, planes ``strides`` apart, into contiguous float32 ``out``."""
    assert _library is not None and out.dtype == torch.float32 and out.is_contiguous()
    first = np.ascontiguousarray(starts, np.int64)
    _library.planes_to_planes(memory.data_ptr(), first.ctypes.data, len(first), flipped, *shape, *strides,
                              *map(_place, numbers), numbers[0] is not None, out.data_ptr())  # fmt: skip


def pixels(memory: torch.Tensor, starts: Indices, flipped: int, shape: tuple[int, int, int], line: int,
           numbers: Numbers, out: torch.Tensor) -> None:  # fmt: skip
    """The same for interleaved rows ``line`` bytes apart, into contiguous or channels-last ``out``."""
    assert _library is not None and out.dtype == torch.float32
    last = out.is_contiguous(memory_format=torch.channels_last)
    assert last or out.is_contiguous()
    first = np.ascontiguousarray(starts, np.int64)
    call = _library.pixels_to_pixels if last else _library.pixels_to_planes
    call(memory.data_ptr(), first.ctypes.data, len(first), flipped, *shape, line,
         *map(_place, numbers), numbers[0] is not None, out.data_ptr())  # fmt: skip


def _place(numbers: torch.Tensor | None) -> int | None:
    return None if numbers is None else numbers.data_ptr()


def sounds(memory: torch.Tensor, starts: Indices, scale: float, out: torch.Tensor) -> None:
    """Stretches of int16 into contiguous float32 ``out`` [n, length]."""
    assert _library is not None and out.dtype == torch.float32 and out.is_contiguous()
    first = np.ascontiguousarray(starts, np.int64)
    _library.sounds(memory.data_ptr(), first.ctypes.data, len(first), out.shape[1], scale, out.data_ptr())
