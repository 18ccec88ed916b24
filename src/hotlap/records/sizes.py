"""Numbers of bytes in words, for whoever tells them."""

from __future__ import annotations

__all__ = ["size_text"]


def size_text(size: float) -> str:
    """``4509715661`` -> ``4.2 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1023.5 or unit == "TiB":
            return f"{size:,.0f} {unit}" if unit == "B" or abs(size) >= 99.95 else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")
