"""What the C library does with memory that tensors no longer need."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_freed_memory"]

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
"""Parameters of mallopt, malloc.h of glibc."""
LARGEST = 2**31 - 1
TOP_PAD_BYTES = 64 << 20


def keep_freed_memory() -> None:
    """Have glibc keep freed memory for the next step. Results do not change. Raises OSError where it refuses.

    By default it gives large tensors back to the system at once, and the next step's memory is faulted in and cleared
    page by page. The process then keeps the memory of its largest moment. Other C libraries are left alone.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return
    for parameter, value in ((MMAP_MAX, 0), (TRIM_THRESHOLD, LARGEST), (TOP_PAD, TOP_PAD_BYTES)):
        if library.mallopt(parameter, value) != 1:
            raise OSError(f"mallopt({parameter}, {value}) was refused")
