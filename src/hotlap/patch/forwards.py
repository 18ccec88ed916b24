"""The model's calls that an edit means, and taking one out of the statement around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.patch.changes import Changes
from hotlap.patch.models import model_calls, model_names
from hotlap.patch.source import Source, dotted, root_name
from hotlap.records.edits import Edit

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["forward_calls", "hoist", "stands_alone"]

_PURE = {"F", "torch", "nn", "functional", "math"}
"""Modules whose functions may be computed after the model as well as before it."""


def forward_calls(source: Source, edit: Edit) -> list[cst.Call]:
    """The model's calls on the edit's line; with target ``forwards`` all of the file outside of ``forward`` methods
    (but none that makes the loss of what another model gave).

    Innermost first, so that what is written for an outer call has the inner one done.
    """
    import libcst as cst

    here = model_calls(source, edit.line)
    if edit.target == "forwards":
        names = {dotted(c.func) for c in here}
        here = [c for c in source.of_type(cst.Call) if dotted(c.func) in names and not _in_forward(source, c)]
        here = [c for c in here if not _makes_loss(source, c)]
    return here[::-1]


def _makes_loss(source: Source, call: cst.Call) -> bool:
    """``loss = head(model(x), y)``: a call on what another model gave, and its result is what backward starts from."""
    import libcst as cst

    statement = source.statement_of(call)
    assign = statement.body[0] if statement is not None else None
    if not isinstance(assign, cst.Assign) or assign.value is not call:
        return False
    target = assign.targets[0].target
    first = target.elements[0].value if isinstance(target, cst.Tuple) and target.elements else target
    name = dotted(first) or ""
    scope: Any = source.function(call) or source.module
    called = {dotted(c.func) for c in source.inside(scope, cst.Call)}
    if f"{name}.backward" not in called and "loss" not in name.lower():
        return False
    known = model_names(source) - {dotted(call.func)}
    given = {dotted(a.value) for a in call.args}
    return any(dotted(c.func) in known for a in call.args for c in source.calls(a)) or any(
        isinstance(other, cst.Assign)
        and isinstance(other.value, cst.Call)
        and dotted(other.value.func) in known
        and dotted(other.targets[0].target) in given
        for other in source.inside(scope, cst.Assign)
    )


def _in_forward(source: Source, call: cst.Call) -> bool:
    function = source.function(call)
    return function is not None and function.name.value == "forward"


def hoist(source: Source, changes: Changes, statement: cst.SimpleStatementLine, call: cst.Call) -> None:
    """Compute the call in a statement of its own, where more than the model's calls would get into the ``with``.

    Left where it is when something with effects is computed before it, when it is not always computed, or when another
    model is called on the line, which would be left outside.
    """
    import libcst as cst

    others = []
    for parent in source.parents(call):
        if parent is statement:
            break
        if isinstance(parent, cst.Call):
            others.append(parent)
        if isinstance(parent, cst.Lambda | cst.BaseComp | cst.IfExp | cst.BooleanOperation | cst.Await):
            return
    known = model_names(source)
    models = [c for c in source.calls(statement) if c is not call and dotted(c.func) in known]
    if statement in changes.hoisted or any(not _makes_loss(source, o) for o in models) or len(statement.body) > 1:
        return
    if _is_chain(source, statement, call):
        return
    within = set(others) | {call}
    before = [c for c in source.calls(statement) if c not in within and source.place(c) < source.place(call)]
    if all(root_name(dotted(c.func) or "?") in _PURE for c in before):
        changes.hoisted[statement] = (call, _free_name(source))


def stands_alone(source: Source, changes: Changes, statement: cst.SimpleStatementLine, call: cst.Call) -> bool:
    """Whether a ``with`` around the statement, as it will be, holds this call and methods of its result alone."""
    hoisted = changes.hoisted.get(statement)
    return hoisted[0] is call if hoisted is not None else _is_chain(source, statement, call)


def _is_chain(source: Source, statement: cst.SimpleStatementLine, call: cst.Call) -> bool:
    """``name = model(x).argmax(1)``: the statement's value is the call, or methods of what it returns."""
    import libcst as cst

    node: Any = call
    for parent in source.parents(call):
        owner = parent.value if isinstance(parent, cst.Attribute) else getattr(parent, "func", None)
        if owner is node:
            node = parent
        else:
            whole = isinstance(parent, cst.Assign | cst.AnnAssign | cst.Expr | cst.Return) and parent.value is node
            return whole and len(statement.body) == 1
    return False


def _free_name(source: Source) -> str:
    import libcst as cst

    used = {n.value for n in source.of_type(cst.Name)}
    return next(name for name in ("output", "model_output", *(f"output_{k}" for k in range(2, 99))) if name not in used)
