"""Two versions of a file as a unified diff that ``git apply`` and ``patch`` take."""

from __future__ import annotations

import difflib

__all__ = ["unified"]


def unified(name: str, before: bytes, after: bytes) -> bytes:
    """The diff in the file's own encoding and line ends; empty when nothing changed."""
    if before == after:
        return b""
    head, tail = f"a/{name}".encode(), f"b/{name}".encode()
    lines = difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after), head, tail, lineterm=b"\n")
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def _lines(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
