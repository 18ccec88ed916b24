"""Which calls are a model's forward, and where that model is made, as far as one file shows it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hotlap.patch.source import Source, Unwritable, dotted, root_name

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["calls_like_models", "class_shows", "made_by", "making", "model_calls", "model_names"]

_MODEL_METHODS = {"parameters", "named_parameters", "train", "eval", "requires_grad_", "named_modules"}
"""Methods that are called on models and on little else."""
_MOVES = {"to", "cuda", "cpu", "float", "train", "eval", "double", "half", "requires_grad_", "apply"}
_NOT_A_MODEL = re.compile(r"crit|loss|print|len|next|iter|tqdm", re.IGNORECASE)
_FAR = 4
"""Functions through which a model is followed back to where it is made."""


def model_names(source: Source) -> set[str]:
    """Names on which the file calls what only models have."""
    import libcst as cst

    found = set()
    for call in source.of_type(cst.Call):
        name = dotted(call.func) or ""
        owner, _, method = name.rpartition(".")
        if owner and method in _MODEL_METHODS:
            found.add(owner)
    return found - {"trainer", "self.trainer", "self"}


def model_calls(source: Source, line: int) -> list[cst.Call]:
    """The forwards on ``line``, outermost first. Unwritable where none is seen."""
    calls = source.calls(source.statement(line))
    known = model_names(source)
    found = [c for c in calls if dotted(c.func) in known]
    if found:
        return found
    likely = [c for c in calls if _may_be_model(source, dotted(c.func))]
    if not likely:
        raise Unwritable("no call of a model is seen there")
    return likely[-1:]


def calls_like_models(source: Source, line: int) -> list[cst.Call]:
    """The calls on ``line`` that are, or may be, a model's."""
    known, calls = model_names(source), source.calls(source.statement(line))
    return [c for c in calls if dotted(c.func) in known or _may_be_model(source, dotted(c.func))]


def _may_be_model(source: Source, name: str | None) -> bool:
    import libcst as cst

    if name is None or _NOT_A_MODEL.search(name) or name.count(".") > (root_name(name) == "self"):
        return False
    other = {n.name.value for n in source.of_type(cst.FunctionDef, cst.ClassDef)} | _imported(source)
    return root_name(name) not in other and name.rpartition(".")[2] not in other


def _imported(source: Source) -> set[str]:
    import libcst as cst

    found = set()
    for alias in source.of_type(cst.ImportAlias):
        name = alias.asname.name if alias.asname is not None else alias.name
        found.add(root_name(dotted(name) or ""))
    return found


def making(source: Source, line: int, what: str = "model") -> list[tuple[str, cst.BaseStatement]]:
    """(name, statement that makes it) for what is called on ``line``, or is made there."""
    import libcst as cst

    statement = source.statement(line)
    if isinstance(statement, cst.SimpleStatementLine):
        made = _assigned(statement)
        if made is not None and not any(dotted(c.func) in model_names(source) for c in source.calls(statement)):
            name, value = made
            if isinstance(value, cst.Call) and _constructs(value):
                return [(name, statement)]
    if what == "optimizer":
        names = [n.rpartition(".")[0] for c in source.calls(statement) if (n := dotted(c.func) or "").endswith(".step")]
    else:
        names = list(dict.fromkeys(dotted(c.func) or "" for c in model_calls(source, line)))
    if not names:
        raise Unwritable(f"no {what} is seen there")
    return [_made(source, name, statement) for name in names]


def _made(source: Source, name: str, user: cst.CSTNode) -> tuple[str, cst.BaseStatement]:
    """The name at the place where it is made, and the statement there: of a branch, the whole ``if``."""
    import libcst as cst

    statement: cst.BaseStatement = made_by(source, name, user)
    assigned = _assigned(statement) if isinstance(statement, cst.SimpleStatementLine) else None
    for parent in source.parents(statement):
        if isinstance(parent, cst.FunctionDef | cst.For | cst.While | cst.With | cst.ClassDef):
            break
        if isinstance(parent, cst.If) and "__name__" not in source.code(parent.test):
            if any(p is parent for p in source.parents(user)):
                break
            statement = parent
    return (assigned[0] if assigned is not None else name), statement


def _constructs(call: cst.Call) -> bool:
    """A capitalised name at the end of the innermost call: ``Net(...)``, ``nn.Sequential(...).to(device)``."""
    inner = _innermost(call)
    return (dotted(inner.func) or "").rpartition(".")[2][:1].isupper()


def _innermost(call: cst.Call) -> cst.Call:
    import libcst as cst

    while isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call):
        call = call.func.value
    return call


def _assigned(statement: cst.SimpleStatementLine) -> tuple[str, Any] | None:
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


def made_by(source: Source, name: str, user: cst.CSTNode, depth: int = 0) -> cst.SimpleStatementLine:
    """The last statement that gives ``name`` its value before ``user`` uses it, followed through callers."""
    import libcst as cst

    function = source.function(user)
    own = name.startswith("self.")
    found: cst.SimpleStatementLine | None = None
    statement: cst.SimpleStatementLine
    for statement in source.of_type(cst.SimpleStatementLine):
        assigned = _assigned(statement)
        if assigned is None or assigned[0] != name or (not own and source.function(statement) is not function):
            continue
        if own or source.place(statement) < source.place(user):
            found = statement
    if found is not None:
        return found
    if function is not None and not own and depth < _FAR:
        caller = _given_by_caller(source, name, function)
        if caller is not None:
            return made_by(source, caller[0], caller[1], depth + 1)
        for statement in source.of_type(cst.SimpleStatementLine):
            assigned = _assigned(statement)
            if assigned is not None and assigned[0] == name and source.function(statement) is None:
                return statement
    raise Unwritable(f"where {name} is made is not seen in this file")


def _given_by_caller(source: Source, name: str, function: cst.FunctionDef) -> tuple[str, cst.Call] | None:
    import libcst as cst

    params = [p.name.value for p in function.params.params]
    if name not in params:
        return None
    callers = [c for c in source.of_type(cst.Call) if dotted(c.func) == function.name.value]
    for call in callers:
        for position, arg in enumerate(call.args):
            matches = arg.keyword.value == name if arg.keyword is not None else position == params.index(name)
            given = dotted(arg.value) if matches and not arg.star else None
            if given is not None:
                return given, call
    return None


def class_shows(source: Source, statement: cst.BaseStatement, word: str) -> bool:
    """Whether the class made here, or one of this file that it uses, shows ``word``; True where it cannot be seen."""
    import libcst as cst

    classes = {c.name.value: source.code(c) for c in source.of_type(cst.ClassDef)}
    assigned = _assigned(statement) if isinstance(statement, cst.SimpleStatementLine) else None
    if assigned is None or not isinstance(assigned[1], cst.Call):
        return True
    todo, seen = [dotted(_innermost(assigned[1]).func) or ""], set()
    if todo[0] not in classes:
        return True
    while todo:
        name = todo.pop()
        seen.add(name)
        if re.search(rf"\b{word}\w*", classes[name]):
            return True
        todo += [c for c in classes if c not in seen and re.search(rf"\b{c}\b", classes[name])]
    return False
