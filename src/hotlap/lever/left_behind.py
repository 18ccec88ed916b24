"""What drawing samples leaves behind for the script to read: how many were skipped, which file was the last.

A loader that works in the training process leaves it in the script's own data set, in step with the batches. Workers
keep theirs to themselves, and a thread that fetches ahead is ahead with it.
"""

from __future__ import annotations

import ast
import functools
import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType

from hotlap.lever.drawing import Drawing, names_of, path_of
from hotlap.lever.users_code import codes_in, is_users_module

__all__ = ["read_of_draws"]

_PUTS = {"add", "append", "appendleft", "extend", "insert", "put", "update"}
"""Methods of containers that put something in."""
_LARGEST = 1 << 20
"""Bytes of a source file that is looked into: larger ones were written by no person."""
_MOST_BYTES = 2 << 20
"""Of all files whose code is looked into, which takes about a second: the main script's is among the first."""


def read_of_draws(drawing: Drawing) -> str | None:
    """``name (file:line)`` of something that drawing sets, and other code of the script reads at that line. None where
    there is none, or none is found: code is read, not run, and of code without a source file nothing is known."""
    functions = drawing.functions.items()
    left = dict.fromkeys(one for function, (of, tree) in functions for one in _left_by(function, of, tree, drawing))
    if not left:
        return None
    sources, read_bytes = list(_sources()), 0
    for source in sources:
        named = [one for one in left if one.name in source.text]
        read_bytes += len(source.text) if named else 0
        if read_bytes > _MOST_BYTES:
            break
        for one in named:
            if line := source.line_that_reads(one, drawing, sources):
                return f"{one.name} ({os.path.basename(source.path)}:{line})"
    return None


@dataclass(frozen=True)
class _Left:
    """An attribute, or a variable of a module or of a function around."""

    name: str
    path: str | None
    """Of the file whose variable it is; None for an attribute."""
    classes: frozenset[str]
    """Of which one has the attribute."""
    once: bool
    """It is set where it is not there yet: who reads it asks first, and finds none."""


def _left_by(function: FunctionType, of: type | None, tree: ast.AST, drawing: Drawing) -> Iterator[_Left]:
    """What ``function`` changes of its object, of what that holds, and of variables around."""
    code = function.__code__
    own = {name for inner in codes_in(code) for name in (*inner.co_varnames, *inner.co_cellvars)}
    own -= {*code.co_varnames[: of is not None]}
    libraries = {
        name
        for name, value in function.__globals__.items()
        if isinstance(value, ModuleType) and not is_users_module(value.__name__, value)
    }
    around = _parents(tree)
    for node in ast.walk(tree):
        changed = _changed(node)
        if changed is None or _root(changed) in own | libraries | {""} or _is_shared(changed):
            continue
        if isinstance(changed, ast.Name):
            yield _Left(changed.id, path_of(function), frozenset(), _is_asked_first(node, changed.id, around))
        elif isinstance(changed, ast.Attribute):
            its = names_of(of) if isinstance(changed.value, ast.Name) else drawing.classes
            yield _Left(changed.attr, None, its, _is_asked_first(node, changed.attr, around))


def _is_shared(node: ast.AST) -> bool:
    """Whether it is a number in memory that processes share (multiprocessing.Value): ``self.skipped.value``."""
    return isinstance(node, ast.Attribute) and node.attr == "value" and isinstance(node.value, ast.Attribute)


def _root(node: ast.AST) -> str:
    """The variable that an attribute is one of, however far in; an empty text where it is another expression's."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _changed(node: ast.AST) -> ast.AST | None:
    """The attribute, or the variable, that ``node`` sets or puts something into."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUTS:
        return node.func.value
    if not isinstance(node, ast.Attribute | ast.Subscript | ast.Name) or isinstance(node.ctx, ast.Load):
        return None
    changed: ast.AST = node
    while isinstance(changed, ast.Subscript):
        changed = changed.value
    return changed


def _sources() -> Iterator[_Source]:
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and is_users_module(name, module) and name.partition(".")[0] != "hotlap":
            try:
                if os.path.getsize(path) <= _LARGEST:
                    with open(path, encoding="utf-8") as file:
                        yield _Source(os.path.realpath(path), file.read(), module)
            except (OSError, ValueError):  # no text, or gone since
                continue


@dataclass(frozen=True)
class _Source:
    """A file that a module of the script's came from."""

    path: str
    text: str
    module: ModuleType

    @functools.cached_property
    def tree(self) -> ast.AST:
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return ast.Module([], [])

    @functools.cached_property
    def read(self) -> dict[str, list[ast.Attribute | ast.Name]]:
        """Attributes and variables that its code reads, by name."""
        found: dict[str, list[ast.Attribute | ast.Name]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.attr if isinstance(node, ast.Attribute) else node.id, []).append(node)
        return found

    @functools.cached_property
    def around(self) -> dict[ast.AST, ast.AST]:
        return _parents(self.tree)

    def line_that_reads(self, left: _Left, drawing: Drawing, sources: list[_Source]) -> int | None:
        """Where code that draws no samples reads what was left."""
        nodes = self.read.get(left.name, ())
        around = self.around if nodes else {}
        variable = left.path is not None and (left.path == self.path or _imports(self.tree, left.name))
        for node in nodes:
            found = self._may_be(node.value, left) if isinstance(node, ast.Attribute) else variable
            if not found or _is_change(node, around) or (left.once and _is_asked_first(node, left.name, around)):
                continue
            if self._is_elsewhere(node, left, drawing, sources):
                return node.lineno
        return None

    def _may_be(self, of: ast.AST, left: _Left) -> bool:
        """Whether ``of`` may have it: what a variable of the module is, is known."""
        known = vars(self.module).get(of.id) if isinstance(of, ast.Name) else None
        if left.path is not None:
            return isinstance(known, ModuleType)
        return known is None or bool(left.classes.intersection(kind.__name__ for kind in type(known).__mro__))

    def _is_elsewhere(self, node: ast.AST, left: _Left, drawing: Drawing, sources: list[_Source]) -> bool:
        """Whether no draw reads it there. A method reads what is its object's where that draws, and is called."""
        of = node.value if isinstance(node, ast.Attribute) else None
        inner: ast.AST = node
        for outer in _outwards(node, self.around):
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([outer.lineno, *(decorator.lineno for decorator in outer.decorator_list)])
                if (self.path, first) in drawing.places:
                    return False
            if isinstance(outer, ast.ClassDef) and isinstance(inner, ast.FunctionDef) and isinstance(of, ast.Name):
                given = [*inner.args.posonlyargs, *inner.args.args]
                if given and of.id == given[0].arg:
                    is_called = any(f".{inner.name}" in source.text for source in sources)
                    return outer.name in left.classes and is_called and not inner.name.startswith("__")
            inner = outer
        return True


def _imports(tree: ast.AST, name: str) -> bool:
    """Whether it has a variable of another module."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return any(name in [alias.name for alias in node.names] for node in found)


def _is_change(node: ast.AST, around: dict[ast.AST, ast.AST]) -> bool:
    """Whether it is looked up to be changed alone: ``data.skipped.clear()`` as a statement."""
    method, *outer = itertools.islice(_outwards(node, around), 3)
    changes = isinstance(method, ast.Attribute) and method.attr in {*_PUTS, "clear"}
    return changes and [type(one) for one in outer] == [ast.Call, ast.Expr]


def _parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _outwards(node: ast.AST, around: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in around:
        node = around[node]
        yield node


def _is_asked_first(node: ast.AST, name: str, around: dict[ast.AST, ast.AST]) -> bool:
    """Whether it stands in, or behind, a condition that asks for an attribute or variable of that name: also
    ``hasattr(self, "name")``."""
    tests: list[ast.AST] = []
    for outer in _outwards(node, around):
        if isinstance(outer, ast.If | ast.IfExp | ast.While):
            tests.append(outer.test)
        elif isinstance(outer, ast.BoolOp):
            tests.append(outer)
    return any(
        name in (getattr(part, "attr", None), getattr(part, "id", None), getattr(part, "value", None))
        for test in tests
        for part in ast.walk(test)
    )
