"""The calls of ``torch.save`` that are put off together: one writer has them all, or an older state may come last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.patch.models import imported
from hotlap.patch.readers import full_name, full_names
from hotlap.patch.source import Source, Unwritable, dotted, root_name

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["save_calls"]


def save_calls(source: Source) -> list[cst.Call]:
    """All of the file, by place. Unwritable where another writer may save to the same path, or where who else looks for
    the file cannot be seen."""
    import libcst as cst

    for other in source.others:
        known = full_names(other)
        for call in other.of_type(cst.Call):
            if full_name(call, known) == "torch.save":
                place = f"{other.name}:{other.place(call)[0]}"
                raise Unwritable(f"torch.save of {place} may write the same file: save in one place, by one writer")
    known = full_names(source)
    found = [c for c in source.of_type(cst.Call) if full_name(c, known) == "torch.save"]
    for node in source.of_type(cst.Name, cst.Attribute):
        parent = next(source.parents(node))
        is_part = isinstance(parent, cst.Attribute | cst.ImportAlias | cst.AsName)
        is_called = isinstance(parent, cst.Call) and parent.func is node
        if not is_part and not is_called and _full(dotted(node), known) == "torch.save":
            raise Unwritable(f"torch.save is handed on in line {source.place(node)[0]}: call it where it is meant")
    opened = _opened(source)
    for call in found:
        path = _path(call)
        if path is not None and dotted(path) in opened:
            line = source.place(call)[0]
            raise Unwritable(f"torch.save writes through an open file in line {line}: give it the path itself")
        teller = _told_from_elsewhere(source, call, path) if path is not None else None
        if teller is not None:
            raise Unwritable(
                f"{teller} (line {source.place(call)[0]}) is told by another file where to save, and that may look for "
                "the file at once: where it does not, copy the state (copy.deepcopy) and call torch.save in a thread"
            )
    return found


def _full(name: str | None, known: dict[str, str]) -> str:
    head, dot, rest = (name or "").partition(".")
    return known.get(head, head) + dot + rest


def _path(call: cst.Call) -> cst.BaseExpression | None:
    """What the call is given as its file."""
    named = [a.value for a in call.args if a.keyword is not None and a.keyword.value == "f"]
    values = [a.value for a in call.args if a.keyword is None]
    return named[0] if named else values[1] if len(values) > 1 else None


def _opened(source: Source) -> set[str]:
    """Names that hold an open file: ``with open(path, "wb") as f``, ``f = path.open("wb")``."""
    import libcst as cst

    found: set[str] = set()
    for node in source.of_type(cst.WithItem, cst.Assign):
        value = node.item if isinstance(node, cst.WithItem) else node.value
        func = value.func if isinstance(value, cst.Call) else None
        last = func.attr.value if isinstance(func, cst.Attribute) else dotted(func) if func is not None else ""
        targets = (
            [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.asname and node.asname.name]
        )
        if last == "open":
            found |= {dotted(target) or "" for target in targets if target is not None}
    return found - {""}


def _told_from_elsewhere(source: Source, call: cst.Call, path: cst.BaseExpression) -> str | None:
    """The function around whose parameter (or object) says where to save, if nothing that the file runs calls it."""
    import libcst as cst

    around = [p for p in source.parents(call) if isinstance(p, cst.FunctionDef)]
    names = {n.value for n in source.inside(path, cst.Name)}
    names |= _made_of(source, around[-1], names) if around else set()
    for function in around:
        params = function.params
        told = [*params.params, *params.kwonly_params, *params.posonly_params]
        if names & {p.name.value for p in told} and not _is_reached(source, function, set()):
            return function.name.value
    return None


def _made_of(source: Source, function: cst.FunctionDef, names: set[str]) -> set[str]:
    """Names in what the function gives to these names."""
    import libcst as cst

    found = set(names)
    while True:
        before = len(found)
        for node in source.inside(function, cst.Assign, cst.AnnAssign, cst.For):
            targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
            value = node.iter if isinstance(node, cst.For) else node.value
            if value is not None and found & {n.value for t in targets for n in source.inside(t, cst.Name)}:
                found |= {n.value for n in source.inside(value, cst.Name)}
        if len(found) == before:
            return found


def _is_reached(source: Source, function: cst.FunctionDef, seen: set[str]) -> bool:
    """Whether the file names the function, or its class, where it runs itself: at its top level, or in a function that
    is reached. One with a decorator may be run by who made that."""
    import libcst as cst

    if function.decorators:
        return True
    classes = [p.name.value for p in source.parents(function) if isinstance(p, cst.ClassDef)]
    wanted, elsewhere = {function.name.value, *classes} - seen, imported(source)
    for node in source.of_type(cst.Name, cst.Attribute):
        name = dotted(node) or (node.attr.value if isinstance(node, cst.Attribute) else "")
        parent: Any = next(source.parents(node))
        is_named = isinstance(parent, cst.FunctionDef | cst.ClassDef) and parent.name is node
        is_part = isinstance(parent, cst.Attribute | cst.ImportAlias | cst.Param | cst.AssignTarget)
        if is_named or is_part or (isinstance(parent, cst.Arg) and parent.value is not node):
            continue
        if name.rpartition(".")[2] not in wanted or ("." in name and root_name(name) in elsewhere):
            continue  # np.save is none of ours
        user = source.function(node)
        if user is None or (user is not function and _is_reached(source, user, seen | wanted)):
            return True
    return False
