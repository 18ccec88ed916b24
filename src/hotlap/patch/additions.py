"""What an edit needs at the top of the file: imports, and the helper functions that its code calls."""

from __future__ import annotations

import ast
import re
from importlib.resources import files
from pkgutil import iter_modules

from hotlap.patch import helpers
from hotlap.records.errors import HotlapError

__all__ = ["add_helpers", "add_import"]


def add_helpers(text: str, name: str) -> str:
    """The source with each helper that it calls but does not define, and ``import torch`` where that is needed."""
    tree = ast.parse(text)
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    for info in iter_modules(helpers.__path__):
        if info.name in called:
            text = _with_helper(text, info.name, name)
    roots = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    if "torch" in roots and not re.search(r"^\s*import (torch\b(?! as)(?!\.)|.*, torch\b(?! as))", text, re.MULTILINE):
        text = add_import(text, "import torch")
    return text


def _with_helper(text: str, helper: str, name: str) -> str:
    source = files(helpers).joinpath(f"{helper}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    lines = source.splitlines()
    first = next(n for n in tree.body if not _is_head(n))
    code = "\n".join(lines[first.lineno - 1 :]).rstrip()
    here = ast.parse(text)
    defined = [n for n in here.body if getattr(n, "name", None) == helper]
    if defined:
        ours = next(n for n in tree.body if getattr(n, "name", None) == helper)
        if ast.dump(ours) != ast.dump(defined[0]):
            raise HotlapError(
                f"{name}:{defined[0].lineno}: {helper} is the script's own; a function of that name was to be added.",
                "Rename the script's.",
            )
        return text
    at = _end_of_imports(here)
    old = text.split("\n")
    rest = old[at:]
    while rest and not rest[0].strip():
        rest = rest[1:]
    text = "\n".join([*old[:at], "", "", *code.split("\n"), *(["", "", *rest] if rest else [""])])
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            text = add_import(text, ast.unparse(node))
    return text


def _is_head(node: ast.stmt) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    exported = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    return docstring or exported or isinstance(node, ast.Import | ast.ImportFrom)


def _end_of_imports(tree: ast.Module) -> int:
    """The line after which code can stand: behind the first run of imports (or the docstring)."""
    end = 0
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        guarded = isinstance(node, ast.Try | ast.If) and any(
            isinstance(n, ast.Import | ast.ImportFrom) for n in node.body
        )
        if docstring or guarded or isinstance(node, ast.Import | ast.ImportFrom):
            end = node.end_lineno or end
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.While | ast.With | ast.If):
            break
    return end


def add_import(text: str, line: str) -> str:
    """The source with an import line, in alphabetical place among the first imports; unchanged if it is there."""
    tree = ast.parse(text)
    heads = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    if any(ast.unparse(n) == line or _binds(n, line) for n in heads):
        return text
    lines = text.split("\n")
    plain = [n for n in heads if not (isinstance(n, ast.ImportFrom) and n.module == "__future__")]
    if not plain:
        docstring = [n for n in tree.body if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)][:1]
        head = (docstring if docstring and docstring[0] is tree.body[0] else []) + heads
        at = max((n.end_lineno or 0 for n in head), default=0)
        return "\n".join([*lines[:at], *([""] if at else []), line, *lines[at:]])
    group = [plain[0]]
    for node in plain[1:]:
        if node.lineno != (group[-1].end_lineno or 0) + 1 or type(node) is not type(group[0]):
            break
        group.append(node)
    later = next((n for n in group if type(n).__name__ == _kind(line) and ast.unparse(n) > line), None)
    from_first = _kind(line) == "Import" and isinstance(group[0], ast.ImportFrom)
    at = later.lineno - 1 if later is not None else (group[0].lineno - 1 if from_first else group[-1].end_lineno or 0)
    return "\n".join([*lines[:at], line, *lines[at:]])


def _kind(line: str) -> str:
    return "ImportFrom" if line.startswith("from ") else "Import"


def _binds(node: ast.Import | ast.ImportFrom, line: str) -> bool:
    """Whether ``node`` binds what ``line`` (one plain import) would bind."""
    wanted = ast.parse(line).body[0]
    assert isinstance(wanted, ast.Import | ast.ImportFrom)
    same_module = type(node) is type(wanted) and getattr(node, "module", None) == getattr(wanted, "module", None)
    names = {(a.name, a.asname) for a in node.names}
    return same_module and {(a.name, a.asname) for a in wanted.names} <= names
