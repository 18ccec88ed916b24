"""Lists of fields: text files with some words a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hotlap_workloads.errors import DataError

__all__ = ["fields", "not_there", "wrong_form"]


def fields(file: Path, form: str = "") -> Iterator[tuple[int, list[str]]]:
    """Number and words of each line that is not empty. With a form (``label path path``), others are errors."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as err:
        raise DataError(file, f"cannot be read: {err.strerror}.", "--data names the folder that holds it.") from err
    except UnicodeDecodeError as err:
        raise DataError(file, f"is no UTF-8 text: {err.reason} at byte {err.start}.", "Save it as UTF-8.") from err
    count = len(form.split())
    for number, line in enumerate(text.splitlines(), 1):
        if words := line.split():
            if form and len(words) != count:
                raise wrong_form(file, number, words, form)
            yield number, words


def not_there(file: Path, path: Path, line: int = 0) -> DataError:
    """The error for a path that a list names."""
    return DataError(file, f"{f'line {line} ' if line else ''}names {path}, which does not exist.")


def wrong_form(file: Path, number: int, words: list[str], form: str) -> DataError:
    """The error that tells how the line should be."""
    return DataError(file, f"line {number} has {len(words)} fields, not `{form}`: {' '.join(words)!r}")
