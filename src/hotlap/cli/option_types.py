"""Types of options: a duration, a count, a name, a share. Apart: commands that measure nothing need no more."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

__all__ = ["duration", "named", "named_path", "positive", "share"]

UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """``90``, ``90s``, ``3m``, ``1.5h`` in seconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h)?\s*", text)
    if match is None or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write 90s, 3m or 1.5h")
    return float(match[1]) * UNITS_S[match[2] or ""]


def positive(text: str) -> int:
    """A count: 1, 2, 3, ..."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


def named(text: str) -> str:
    """A path or address that is not empty: of an unset variable, "" would mean the folder one is in."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; is a variable of your shell unset?")
    return text


def named_path(text: str) -> Path:
    """A path that is not empty."""
    return Path(named(text))


def share(text: str) -> float:
    """``0.02``, ``2%``: a part of a whole, neither none nor all of it."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*", text)
    value = float(match[1]) / (100.0 if match[2] else 1.0) if match else 0.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: write 0.02 or 2%")
    return value
