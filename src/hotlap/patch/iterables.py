"""The loop that trains with a loader: which of a file's ``for`` statements it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.patch.changes import Changes
from hotlap.patch.making import given, making
from hotlap.patch.source import Source, Unwritable, dotted
from hotlap.patch.training import trains
from hotlap.records.edits import Edit

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["replace_iterable"]

_COUNTS = {"len", "range", "trange"}
"""Calls that give numbers, whatever is named in them."""
_PREPARES = {"prepare", "prepare_data_loader", "setup_dataloaders"}


def replace_iterable(source: Source, changes: Changes, edit: Edit) -> None:
    """What the training loop goes over; from the loader's own line to the loop that trains with it."""
    import libcst as cst

    statement: Any = source.statement(edit.line)
    loop = _loop_of(source, statement, edit.line) if isinstance(statement, cst.SimpleStatementLine) else statement
    if not isinstance(loop, cst.For) or loop.asynchronous is not None or _only_counts(source, loop):
        raise Unwritable("the `for` that trains with it is not seen in this file")
    _refuse_prepared(source, loop)
    if not source.code(loop.iter).startswith(edit.code.partition("{")[0]):
        changes.templates[loop].append(edit.code)


def _refuse_prepared(source: Source, loop: cst.For) -> None:
    """Unwritable where a library's loader tells it which batch is the last one: fetched ahead, it tells it too early,
    and gradients that are accumulated are stepped with in the middle of a step."""
    import libcst as cst

    names, prepared = _gone_over(source, loop), _prepared(source)
    function = source.function(loop)
    given_names = {n for name in names for n, _ in given(source, name, function)} if function is not None else set()
    accumulates = any((dotted(c.func) or "").endswith(".accumulate") for c in source.inside(loop, cst.Call))
    if accumulates or (names | given_names) & prepared:
        raise Unwritable(
            "the loader was prepared by a library that tells which batch is the last, and with a thread ahead it would "
            "tell so too early: give the DataLoader workers (num_workers)"
        )


def _prepared(source: Source) -> set[str]:
    """Names that hold what Accelerate or Fabric made of a loader, also one of which it skips the first batches."""
    import libcst as cst

    found: set[str] = set()
    for node in source.of_type(cst.Assign):
        calls = source.inside(node.value, cst.Call)
        last = {c.func.attr.value if isinstance(c.func, cst.Attribute) else dotted(c.func) for c in calls}
        over = {dotted(n) for n in source.inside(node.value, cst.Name, cst.Attribute)}
        if last & _PREPARES or (found & over and ("skip_first_batches" in last or not calls)):
            found |= {dotted(n) or "" for t in node.targets for n in source.inside(t.target, cst.Name, cst.Attribute)}
    return found - {"", "self"}


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
