"""The C library's calls on memory maps, typed: Python's own cannot map a file into a place of ours."""

from __future__ import annotations

import ctypes

__all__ = ["FAILED", "MAP_FIXED", "libc"]

FAILED = ctypes.c_void_p(-1).value
"""What mmap returns for an error; ``ctypes.get_errno()`` says which."""
MAP_FIXED = 0x10


def libc() -> ctypes.CDLL:
    """The functions, addresses as ``c_void_p``."""
    lib = ctypes.CDLL(None, use_errno=True)
    lib.mmap.restype = ctypes.c_void_p
    lib.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    lib.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    lib.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return lib
