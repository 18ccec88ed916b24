"""Plain arguments as text, which names the result that they gave."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

__all__ = ["plain_word"]

_LONGEST_TEXT, _MOST_VALUES = 1024, 16
"""Characters, and values in a list."""
_PLAIN = frozenset((int, float, str, bool, type(None)))


def plain_word(value: Any) -> str | None:
    """A plain value, or a short list or tuple of them, as text that no other has; None for anything else."""
    kind = type(value)
    if kind is tuple or kind is list:
        words = [plain_word(part) for part in value] if len(value) <= _MOST_VALUES else [None]
        return None if None in words else f"{kind.__name__}({', '.join(map(str, words))})"
    if isinstance(value, PurePath):
        return f"{kind.__name__} {str(value)!r}"
    is_number = kind.__module__ == "numpy" and hasattr(value, "item") and value.ndim == 0
    plain = value.item() if is_number else value
    if type(plain) not in _PLAIN or (type(plain) is str and len(plain) > _LONGEST_TEXT):
        return None
    return f"{kind.__name__} {plain!r}"
