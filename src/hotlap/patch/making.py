"""Where a model, an optimizer or what a ``with`` enters is made, as far as one file shows it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hotlap.patch.models import may_be_model, model_calls, model_names
from hotlap.patch.source import Source, Unwritable, dotted

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["assigned", "class_shows", "given", "innermost", "making"]

_FAR = 4
"""Functions through which a model is followed back to where it is made."""


def making(source: Source, line: int, what: str = "model") -> list[tuple[str, cst.BaseStatement]]:
    """(name, statement that makes it) for what is called on ``line``, or is made there. ``what``: ``model``,
    ``optimizer``, or ``region``, which a ``with`` there enters."""
    import libcst as cst

    statement = source.statement(line)
    if isinstance(statement, cst.SimpleStatementLine):
        made = assigned(statement)
        if made is not None and not any(dotted(c.func) in model_names(source) for c in source.calls(statement)):
            name, value = made
            if isinstance(value, cst.Call) and _constructs(source, value):
                return [(name, statement)]
    if what == "optimizer":
        names = [n.rpartition(".")[0] for c in source.calls(statement) if (n := dotted(c.func) or "").endswith(".step")]
    elif what == "region":
        items = statement.items if isinstance(statement, cst.With) else ()
        names = [name for item in items if (name := dotted(item.item) or "")]
    else:
        names = list(dict.fromkeys(dotted(c.func) or "" for c in model_calls(source, line)))
    if not names:
        raise Unwritable(f"no {what} is seen there")
    return [_made(source, name, statement) for name in names]


def _made(source: Source, name: str, user: cst.CSTNode) -> tuple[str, cst.BaseStatement]:
    """The name at the place where it is made, and the statement there: of a branch that ends before it is used, the
    whole ``if``."""
    import libcst as cst

    made, user = _made_for(source, name, user)
    statement: cst.BaseStatement = made
    named = assigned(made)
    for parent in source.parents(made):
        if isinstance(parent, cst.FunctionDef | cst.For | cst.While | cst.With | cst.ClassDef):
            break
        if isinstance(parent, cst.If) and "__name__" not in source.code(parent.test):
            if any(p is parent for p in source.parents(user)):
                break
            statement = parent
    return (named[0] if named is not None else name), statement


def _constructs(source: Source, call: cst.Call) -> bool:
    """A capitalised name at the end of the innermost call: ``Net(...)``, ``nn.Sequential(...).to(device)``; not
    ``Categorical(logits=policy(x))``."""
    inner = innermost(call)
    inside = [c for arg in inner.args for c in source.calls(arg)]
    named = (dotted(inner.func) or "").rpartition(".")[2][:1].isupper()
    return named and not any(may_be_model(source, dotted(c.func)) for c in inside)


def innermost(call: cst.Call) -> cst.Call:
    """``Net()`` of ``Net().to(device).train()``."""
    import libcst as cst

    while isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call):
        call = call.func.value
    return call


def assigned(statement: cst.SimpleStatementLine) -> tuple[str, Any] | None:
    """(name, value) of ``name = value``."""
    import libcst as cst

    for small in statement.body:
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            name = dotted(small.targets[0].target)
            if name is not None:
                return name, small.value
        if isinstance(small, cst.AnnAssign) and small.value is not None and (name := dotted(small.target)):
            return name, small.value
    return None


def _made_for(source: Source, name: str, user: cst.CSTNode, depth: int = 0) -> tuple[Any, cst.CSTNode]:
    """The last statement that gives ``name`` its value before ``user`` uses it, followed through callers; and who uses
    it there."""
    import libcst as cst

    function = source.function(user)
    own = name.startswith("self.")
    around = next((p for p in source.parents(user) if isinstance(p, cst.ClassDef)), None) if own else None
    found: cst.SimpleStatementLine | None = None
    statement: cst.SimpleStatementLine
    for statement in source.of_type(cst.SimpleStatementLine):
        named = assigned(statement)
        if named is None or named[0] != name or dotted(named[1]) == "None":
            continue
        if own:
            here = around is None or any(p is around for p in source.parents(statement))
        else:
            here = source.function(statement) is function and source.place(statement) < source.place(user)
        if here:
            found = statement
    if found is not None:
        _refuse_unsure(source, name, found, user)
        return found, user
    if function is not None and not own and depth < _FAR:
        _refuse_unsure(source, name, None, user)
        callers = given(source, name, function)
        if callers:
            first, call = callers[0]
            if first is None or any((n, source.function(c)) != (first, source.function(call)) for n, c in callers):
                raise Unwritable(f"{function.name.value} is given several models")
            return _made_for(source, first, call, depth + 1)
        for statement in source.of_type(cst.SimpleStatementLine):
            named = assigned(statement)
            if named is not None and named[0] == name and source.function(statement) is None:
                _refuse_unsure(source, name, statement, user)
                return statement, user
    raise Unwritable(f"where {name} is made is not seen in this file")


def _refuse_unsure(source: Source, name: str, made: cst.CSTNode | None, user: cst.CSTNode) -> None:
    """Unwritable where something else than ``made`` may give ``name`` its value: a tuple, a loop, a ``with``, a
    ``try``."""
    import libcst as cst

    if made is not None and any(isinstance(p, cst.Try | cst.ExceptHandler) for p in source.parents(made)):
        raise Unwritable(f"{name} is made in a `try`")
    for node in source.of_type(cst.Tuple, cst.List, cst.For, cst.AsName):
        targets: Any = None
        if isinstance(node, cst.Tuple | cst.List):
            targets = node if isinstance(next(source.parents(node)), cst.AssignTarget) else None
        else:
            targets = node.target if isinstance(node, cst.For) else node.name
        if targets is None or source.function(node) is not source.function(user) or (
            made is not None and source.place(node) < source.place(made)
        ):  # fmt: skip
            continue
        if any(dotted(n) == name for n in source.inside(targets, cst.Name, cst.Attribute)):
            raise Unwritable(f"{name} gets its value together with others, or more than once")


def given(source: Source, name: str, function: cst.FunctionDef) -> list[tuple[str | None, cst.Call]]:
    """What each call of ``function`` in this file gives for its parameter ``name``: a name, or None for anything
    else."""
    import libcst as cst

    params = [p.name.value for p in function.params.params]
    if name not in params:
        return []
    found: list[tuple[str | None, cst.Call]] = []
    for call in source.of_type(cst.Call):
        if dotted(call.func) != function.name.value:
            continue
        for position, arg in enumerate(call.args):
            matches = arg.keyword.value == name if arg.keyword is not None else position == params.index(name)
            if matches:
                found.append((None if arg.star else dotted(arg.value), call))
    return found


def class_shows(source: Source, statement: cst.BaseStatement, word: str) -> bool:
    """Whether the class made here, or one of this file that it uses, shows ``word``; True where it cannot be seen."""
    import libcst as cst

    classes = {c.name.value: source.code(c) for c in source.of_type(cst.ClassDef)}
    named = assigned(statement) if isinstance(statement, cst.SimpleStatementLine) else None
    if named is None or not isinstance(named[1], cst.Call):
        return True
    todo, seen = [dotted(innermost(named[1]).func) or ""], set()
    if todo[0] not in classes:
        return True
    while todo:
        name = todo.pop()
        seen.add(name)
        if re.search(rf"\b{word}\w*", classes[name]):
            return True
        todo += [c for c in classes if c not in seen and re.search(rf"\b{c}\b", classes[name])]
    return False
