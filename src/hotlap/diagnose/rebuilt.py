"""Whether the training loader is constructed anew each epoch."""

from __future__ import annotations

from hotlap.diagnose.view import View

__all__ = ["times_rebuilt"]


def times_rebuilt(view: View) -> int:
    """How often the training loader was constructed at its line; 0 or 1: once, or not known."""
    where = view.loader.where if view.loader else None
    if where is None:
        return 0
    counts = [0]
    for row in view.setting_rows("loader_made"):
        made = next(iter(view.setting_where(row)), None)
        if made is not None and (made.file, made.line) == (where.file, where.line):
            counts.append(int(row.value.get("count") or 0))
    return max(counts)
