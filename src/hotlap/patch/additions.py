"""What an edit needs at the top of the file: imports, and the helper functions that its code calls."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from importlib.resources import files
from pkgutil import iter_modules
from symtable import SymbolTable, symtable

from hotlap.patch import helpers
from hotlap.records.errors import HotlapError

__all__ = ["add_helpers", "add_import"]

_Import = ast.Import | ast.ImportFrom


def add_helpers(text: str, name: str) -> str:
    """The source with each helper that it calls but does not define, and ``import torch`` where that is needed."""
    tree = ast.parse(text)
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    wanted = [i.name for i in iter_modules(helpers.__path__) if i.name in called and not _has(tree, i.name)]
    for helper in wanted:
        _refuse_clash(tree, helper, name)
    for helper in wanted:
        text = _with_helper(text, helper)
    if "torch" not in _bindings(ast.parse(text)) and _looked_up(symtable(text, name, "exec"), "torch"):
        text = add_import(text, "import torch")
    return text


def _source(helper: str) -> str:
    return files(helpers).joinpath(f"{helper}.py").read_text(encoding="utf-8")


def _has(tree: ast.Module, helper: str) -> bool:
    """Whether an earlier patch has put it there."""
    own = [ast.dump(n) for n in tree.body if getattr(n, "name", None) == helper]
    return own == [ast.dump(n) for n in ast.parse(_source(helper)).body if getattr(n, "name", None) == helper]


def _refuse_clash(tree: ast.Module, helper: str, name: str) -> None:
    """HotlapError where the script gives a name of the helper's, at its top level, to something else."""
    theirs = _bindings(tree)
    for ours, nodes in _bindings(ast.parse(_source(helper))).items():
        held = theirs.get(ours, [])
        same = isinstance(nodes[0], _Import) and any(_same_import(n, nodes[0], ours) for n in held)
        if held and not same and ours != "__all__":
            raise HotlapError(
                f"{name}:{min(n.lineno for n in held)}: {ours} is the script's own; "
                f"{'a function' if ours == helper else f'{helper} with a part'} of that name was to be added.",
                "Rename the script's.",
            )


def _bindings(tree: ast.Module) -> dict[str, list[ast.stmt | ast.expr]]:
    """Names of the module and what gives them their value; what only type checkers see is left out."""
    found: dict[str, list[ast.stmt | ast.expr]] = defaultdict(list)
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name].append(node)
        elif isinstance(node, _Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]].append(node)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[node.id].append(node)
        elif not (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")):
            todo += ast.iter_child_nodes(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            for name in node.names:
                found[name].append(node)
    return found


def _same_import(node: ast.stmt | ast.expr, wanted: _Import, name: str) -> bool:
    """Whether both give ``name`` the same thing: as ``import torch`` and ``import torch.nn`` do."""
    if type(node) is not type(wanted) or not isinstance(node, _Import):
        return False
    if getattr(node, "module", None) != getattr(wanted, "module", None):
        return False
    meant = [
        {(a.name if a.asname or isinstance(n, ast.ImportFrom) else name) for a in n.names
         if name == (a.asname or a.name.partition(".")[0])}
        for n in (node, wanted)
    ]  # fmt: skip
    return bool(meant[0] & meant[1])


def _looked_up(table: SymbolTable, name: str) -> bool:
    """Whether code of any scope takes the name from the module's top level."""
    if name in table.get_identifiers():
        symbol = table.lookup(name)
        if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
            return True
    return any(_looked_up(child, name) for child in table.get_children())


def _with_helper(text: str, helper: str) -> str:
    """The source with the helper's imports, and itself behind the imports and above what first speaks of it."""
    source = _source(helper)
    tree = ast.parse(source)
    first = next(n for n in tree.body if not _is_head(n))
    code = "\n".join(source.split("\n")[first.lineno - 1 :]).rstrip()
    for node in tree.body:
        if isinstance(node, _Import) and ast.unparse(node) != "import torch":  # torch: where all else is written
            text = add_import(text, ast.unparse(node), helper)
    at = max((n.end_lineno or 0 for n in _top(ast.parse(text), helper) if not _is_plain(n)), default=0)
    old = text.split("\n")
    rest = old[at:]
    while rest and not rest[0].strip():
        rest = rest[1:]
    above = [*old[:at], "", ""] if at else []
    return "\n".join([*above, *code.split("\n"), *(["", "", *rest] if rest else [""])])


def _is_head(node: ast.stmt) -> bool:
    exported = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    return _is_docstring(node) or exported or isinstance(node, _Import)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_plain(node: ast.stmt) -> bool:
    return not (_is_docstring(node) or isinstance(node, _Import | ast.Try | ast.If))


def _top(tree: ast.Module, helper: str = "") -> list[ast.stmt]:
    """The statements at the top, up to the first function, class, loop or branch, or mention of the helper."""
    found = []
    for node in tree.body:
        guarded = isinstance(node, ast.Try | ast.If) and any(isinstance(n, _Import) for n in node.body)
        compound = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.For | ast.While
                              | ast.With | ast.If | ast.Try)  # fmt: skip
        mentioned = any(isinstance(n, ast.Name) and n.id == helper for n in ast.walk(node))
        if (compound and not guarded) or mentioned:
            break
        found.append(node)
    return found


def add_import(text: str, line: str, helper: str = "") -> str:
    """The source with an import line, in alphabetical place among the first imports; unchanged if it is there.

    That of torch stands beside torch's others: what the script sets before those (``os.environ``) torch is to see.
    """
    top = _top(ast.parse(text), helper)
    heads = [n for n in top if isinstance(n, _Import)]
    if any(ast.unparse(n) == line or _binds(n, line) for n in heads):
        return text
    lines = text.split("\n")
    plain = [n for n in heads if not (isinstance(n, ast.ImportFrom) and n.module == "__future__")]
    of_torch = [n for n in plain if _root(n) == "torch"]
    settings = [n for n in top if _is_plain(n) and "environ" in ast.unparse(n)]
    if line == "import torch" and settings and not of_torch:
        at = settings[-1].end_lineno or 0
        return "\n".join([*lines[:at], line, *lines[at:]])
    if not plain:
        head = ([top[0]] if top and _is_docstring(top[0]) else []) + heads
        first = next((k for k, text in enumerate(lines) if not re.match(r"#!|#.*coding[:=]", text)), 0)
        at = max((n.end_lineno or 0 for n in head), default=first)
        return "\n".join([*lines[:at], *([""] if head else []), line, *lines[at:]])
    group = _group(plain, of_torch[0] if of_torch and line == "import torch" else plain[0])
    later = next((n for n in group if type(n).__name__ == _kind(line) and ast.unparse(n) > line), None)
    from_first = _kind(line) == "Import" and isinstance(group[0], ast.ImportFrom)
    at = later.lineno - 1 if later is not None else (group[0].lineno - 1 if from_first else group[-1].end_lineno or 0)
    return "\n".join([*lines[:at], line, *lines[at:]])


def _group(heads: list[_Import], member: _Import) -> list[_Import]:
    """The imports of one kind, line by line, of which ``member`` is one."""
    groups: list[list[_Import]] = []
    for node in heads:
        if groups and node.lineno == (groups[-1][-1].end_lineno or 0) + 1 and type(node) is type(groups[-1][-1]):
            groups[-1].append(node)
        else:
            groups.append([node])
    return next(g for g in groups if member in g)


def _root(node: _Import) -> str:
    module = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
    return module.partition(".")[0]


def _kind(line: str) -> str:
    return "ImportFrom" if line.startswith("from ") else "Import"


def _binds(node: _Import, line: str) -> bool:
    """Whether ``node`` binds what ``line`` (one plain import) would bind."""
    wanted = ast.parse(line).body[0]
    assert isinstance(wanted, _Import)
    same_module = type(node) is type(wanted) and getattr(node, "module", None) == getattr(wanted, "module", None)
    names = {(a.name, a.asname) for a in node.names}
    return same_module and {(a.name, a.asname) for a in wanted.names} <= names
