"""The model's calls that an edit means, and taking one out of the statement around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.patch.changes import Changes
from hotlap.patch.models import model_calls, model_names
from hotlap.patch.source import Source, dotted
from hotlap.records.edits import Edit

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["forward_calls", "hoist", "is_plain_tensor"]

_NOT_OF_TENSORS = {"loss", "logits", "last_hidden_state", "hidden_states", "pooler_output", "sample", "items", "keys",
                   "values", "get", "to_tuple"}  # fmt: skip
"""Attributes of what a model returns that say it is no tensor."""


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


def is_plain_tensor(source: Source, call: cst.Call) -> bool:
    """False where the code around shows that the model returns something else: a tuple, a dict, an object."""
    import libcst as cst

    parent = next(source.parents(call))
    if isinstance(parent, cst.Attribute):
        return parent.attr.value not in _NOT_OF_TENSORS
    if isinstance(parent, cst.Subscript):
        return not _is_text_index(source, parent)
    if not isinstance(parent, cst.Assign):
        return not isinstance(parent, cst.Arg) or parent.star == ""
    target = parent.targets[0].target
    if not isinstance(target, cst.Name):
        return not isinstance(target, cst.Tuple | cst.List)
    scope: Any = source.function(call) or source.module
    for node in source.inside(scope, cst.Attribute, cst.Subscript):
        if isinstance(node.value, cst.Name) and node.value.value == target.value:
            if isinstance(node, cst.Attribute) and node.attr.value in _NOT_OF_TENSORS:
                return False
            if isinstance(node, cst.Subscript) and _is_text_index(source, node):
                return False
    return True


def _is_text_index(source: Source, node: cst.Subscript) -> bool:
    import libcst as cst

    return any(isinstance(e.slice, cst.Index) and isinstance(e.slice.value, cst.SimpleString) for e in node.slice)


def hoist(source: Source, changes: Changes, statement: cst.SimpleStatementLine, call: cst.Call) -> None:
    """Compute the call in a statement of its own, where more than the model's calls would get into the ``with``.

    Left where it is when something with effects is computed before it, or when it is not always computed.
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
    if statement in changes.hoisted or any(dotted(o.func) in known and not _makes_loss(source, o) for o in others):
        return
    shorter = [o for o in others if not _belongs(source, o, call)]
    if not shorter or len(statement.body) > 1:
        return
    within = set(others) | {call}
    earlier = [c for c in source.calls(statement) if c not in within and source.place(c) < source.place(call)]
    if not earlier:
        changes.hoisted[statement] = (call, _free_name(source))


def _belongs(source: Source, outer: cst.Call, call: cst.Call) -> bool:
    """``model(x).argmax(1)``: a method of what the call returns."""
    import libcst as cst

    return isinstance(outer.func, cst.Attribute) and outer.func.value is call


def _free_name(source: Source) -> str:
    import libcst as cst

    used = {n.value for n in source.of_type(cst.Name)}
    return next(name for name in ("output", "model_output", *(f"output_{k}" for k in range(2, 99))) if name not in used)
