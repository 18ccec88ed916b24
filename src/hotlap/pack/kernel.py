"""The optional kernel: what numpy, torch and zlib do in several passes or slowly, in C.

``windows.c``, ``jpeg.c`` (both by the threads of ``team.c``) and ``crc32.c`` are compiled by the machine's own
compiler (the one that torch.compile needs too), once, into the user's cache folder. Nobody waits for that: batches are
made in torch until it is there, and with the same bits after. Without a compiler, or with HOTLAP_FUSED=0, all is torch;
:func:`state` says which.
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

from hotlap.pack.openmp import team_functions

__all__ = ["library", "ready", "state"]

_SOURCES = [Path(__file__).with_name(name) for name in ("windows.c", "jpeg.c", "crc32.c", "team.c")]
_HEADER = Path(__file__).with_name("team.h")
_FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")
"""No contraction: a product and a sum rounded apart, as torch rounds them."""
_TIME_LIMIT_S = 60

_lock = threading.Lock()
_library: ctypes.CDLL | None = None
_state = "not asked for"
_has_team = False
"""The kernel knows torch's team; or must do without one, in a process that was forked."""


def state() -> str:
    """``ready``, ``compiling``, or why there is no kernel."""
    return _state


def ready(wait: bool = False) -> bool:
    """Whether :func:`library` can be called. The first call begins to compile it where it is not there yet."""
    global _state
    if _library is None and _state == "not asked for":
        with _lock:
            if _state == "not asked for":
                _begin()
    if wait and _state == "compiling":
        _compiling().join()
    return _library is not None


def library() -> ctypes.CDLL:
    """The kernel, once it is :func:`ready`. With torch's team as soon as torch is imported: packing begins without."""
    global _has_team
    assert _library is not None, _state
    if not _has_team and (functions := team_functions()):
        _library.set_team(*functions)
        _has_team = True
    return _library


def _after_fork() -> None:
    """The team's threads, and one that compiles, stayed with the parent: a call of the team would wait for ever."""
    global _lock, _state, _has_team
    _lock, _has_team = threading.Lock(), True
    if _library is not None:
        _library.set_team(None, None, None)
    if _state == "compiling":
        _state = "not asked for" if _library is None else "ready"
        _compiling.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
    crc = zlib.crc32(
        b"".join(p.read_bytes() for p in [*_SOURCES, _HEADER]) + repr(_FLAGS).encode() + processor.encode()
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "hotlap" / f"fused-{crc:08x}.so"


def _compile() -> None:
    global _state
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "cc")
    try:
        _path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_path().parent) as folder:
            made = Path(folder, "fused.so")
            done = subprocess.run([compiler, *_FLAGS, "-o", str(made), *map(str, _SOURCES)], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=_TIME_LIMIT_S, check=False)  # fmt: skip
            if done.returncode == 0:
                os.replace(made, _path())
        if done.returncode:  # said when the folder is gone: who waits for it may end the process then
            _state = f"{compiler} failed: {(done.stderr.strip().splitlines() or ['no message'])[0]}"
        else:
            _open()
    except (OSError, subprocess.TimeoutExpired) as err:
        _state = f"cannot be compiled: {err}"


def _open() -> None:
    global _library, _state
    try:
        found = ctypes.CDLL(str(_path()))
    except OSError as err:
        _state = f"cannot be loaded: {err}"
        return
    number, place, real = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
    found.planes_to_planes.argtypes = [place, place, *[number] * 7, place, place, ctypes.c_int, place, number]
    for function in (found.pixels_to_pixels, found.pixels_to_planes):
        function.argtypes = [place, place, *[number] * 6, place, place, ctypes.c_int, place, number]
    found.sounds.argtypes = [place, place, number, number, real, place]
    for function in (found.planes_to_planes, found.pixels_to_pixels, found.pixels_to_planes, found.sounds):
        function.restype = None
    found.crc32.argtypes, found.crc32.restype = [place, number, ctypes.POINTER(ctypes.c_uint32)], number
    found.jpeg_windows.argtypes = [place] * 4 + [number] + [place] * 2 + [number] * 3 + [place]
    found.jpeg_windows.restype = number
    found.set_team.argtypes, found.set_team.restype = [place] * 3, None
    _library, _state = found, "ready"
