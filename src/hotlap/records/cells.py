"""Names of a notebook's cells, which stand where a file's name would."""

from __future__ import annotations

import re

__all__ = ["cell_name", "is_cell", "line_words", "with_lines_in_words"]

_PLACE = re.compile(r"(cell In\[\d+\]):(\d+)")


def cell_name(number: int) -> str:
    """``cell In[3]``, as IPython's own tracebacks name it."""
    return f"cell In[{number}]"


def is_cell(file: str) -> bool:
    """Whether a file's name is that of a cell."""
    return file.startswith("cell In[")


def line_words(file: str, line: int) -> str:
    """What follows the name of a file or cell: ``:48``, ``, line 12``; nothing without a line."""
    if not line:
        return ""
    return f", line {line}" if is_cell(file) else f":{line}"


def with_lines_in_words(text: str) -> str:
    """``cell In[3]:12`` becomes ``cell In[3], line 12``, wherever it stands."""
    return _PLACE.sub(r"\1, line \2", text)
