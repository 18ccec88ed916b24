"""What a source is: rows by number, in any order, in any process; and how a row that cannot be read is told."""

from __future__ import annotations

from typing import Any, Protocol

from hotlap.records.errors import HotlapError

__all__ = ["BadRow", "Source", "reason"]


class BadRow(HotlapError):
    """One row cannot be packed: corrupt, unreadable, of another size. Others may be fine."""


def reason(err: Exception) -> str:
    """Why something failed, to follow "cannot be read: "."""
    if isinstance(err, FileNotFoundError):  # fsspec's have the address alone
        return "it is not there"
    said = str(err).rstrip(".")  # of aiohttp's errors, strerror is less than that
    return (err.strerror if isinstance(err, OSError) and said.startswith("[Errno ") else said) or type(err).__name__


class Source(Protocol):
    """A data set to pack. Must survive pickling: each packing process gets its own copy.

    One whose rows are read by no code that may hold threads (a user's, torch's, OpenCV's) says ``may_fork = True``: its
    packing processes may be copies of this one, which start at once.
    """

    ragged: frozenset[str]
    """Columns whose leading dimension may vary."""
    metadata: dict[str, Any]
    """Kept in the pack's manifest (class names …); JSON."""

    def __len__(self) -> int: ...

    def name(self, index: int) -> str:
        """What a person calls this row (a path). Names must differ."""
        ...

    def row(self, index: int) -> dict[str, Any]:
        """Column name -> array, tensor, number, bytes or text. Raises BadRow (or what the decoder raises)."""
        ...

    def fingerprint(self) -> str:
        """Changes when the source does: an interrupted packing continues only where it is the same."""
        ...
