"""The loop that trains with a loader: which of a file's ``for`` statements it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.patch.changes import Changes
from hotlap.patch.making import making
from hotlap.patch.source import Source, Unwritable, dotted
from hotlap.patch.training import trains
from hotlap.records.edits import Edit

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["replace_iterable"]

_COUNTS = {"len", "range", "trange"}
"""Calls that give numbers, whatever is named in them."""


def replace_iterable(source: Source, changes: Changes, edit: Edit) -> None:
    """What the training loop goes over; from the loader's own line to the loop that trains with it."""
    import libcst as cst

    statement: Any = source.statement(edit.line)
    loop = _loop_of(source, statement, edit.line) if isinstance(statement, cst.SimpleStatementLine) else statement
    if not isinstance(loop, cst.For) or loop.asynchronous is not None or _only_counts(source, loop):
        raise Unwritable("the `for` that trains with it is not seen in this file")
    if not source.code(loop.iter).startswith(edit.code.partition("{")[0]):
        changes.templates[loop].append(edit.code)


def _loop_of(source: Source, statement: cst.SimpleStatementLine, line: int) -> cst.For | None:
    """The one loop over what the line makes; of a line that makes no loader, the loop around it."""
    import libcst as cst

    makes = any((dotted(c.func) or "").endswith("DataLoader") for c in source.calls(statement))
    if makes or not source.loops(statement):
        names = {name for name, _ in making(source, line)}
        loops = [f for f in source.of_type(cst.For) if names & _gone_over(source, f)]
    else:
        loops = [f for f in source.loops(statement) if isinstance(f, cst.For)][:1]
    loops = [f for f in loops if trains(source, f)]
    return loops[0] if len(loops) == 1 else None


def _gone_over(source: Source, loop: cst.For) -> set[str]:
    """Names of what gives the batches: ``loader`` of ``enumerate(loader)``, and none of ``range(len(loader))``."""
    import libcst as cst

    found = set()
    for node in source.inside(loop.iter, cst.Name, cst.Attribute):
        parents = list(source.parents(node))
        within = parents[: parents.index(loop)]
        counted = any(_is_count(p) for p in within)
        part = isinstance(parents[0], cst.Attribute) or (isinstance(parents[0], cst.Call) and parents[0].func is node)
        if not counted and not part and (name := dotted(node)) is not None:
            found.add(name)
    return found


def _only_counts(source: Source, loop: cst.For) -> bool:
    """``for epoch in range(3)``: what it goes over is cheap, and no batches."""
    import libcst as cst

    return any(_is_count(c) for c in source.inside(loop.iter, cst.Call)) and not _gone_over(source, loop)


def _is_count(node: cst.CSTNode) -> bool:
    import libcst as cst

    return isinstance(node, cst.Call) and dotted(node.func) in _COUNTS
