"""A parsed script and what rules ask of it: names, calls, assignments, what stands inside what."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar, cast

__all__ = ["Function", "Loop", "Script", "dotted", "keyword", "names_in"]

Loop = ast.For | ast.While | ast.AsyncFor
Function = ast.FunctionDef | ast.AsyncFunctionDef
N = TypeVar("N", bound=ast.AST)


def dotted(node: ast.AST) -> str:
    """``torch.utils.data`` of a chain of names; of anything else what is known, ``.item`` behind a call."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword, or None."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def names_in(node: ast.AST) -> set[str]:
    """Names (and ``self.name``) that are read or written within."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found | {dotted(n) for n in ast.walk(node) if isinstance(n, ast.Attribute)}


class Script:
    """A file's tree with parents. Raises SyntaxError, ValueError (a null byte) when it is not Python."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines = re.split("\r\n|\r|\n", text)  # as Python counts them: a form feed ends none
        self.tree = ast.parse(text)
        self.parent: dict[ast.AST, ast.AST] = {}
        self._children: dict[ast.AST, list[ast.AST]] = {}
        self._by_type: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        todo: list[ast.AST] = [self.tree]
        while todo:
            node = todo.pop()
            self._by_type[type(node)].append(node)
            children = list(ast.iter_child_nodes(node))
            self._children[node] = children
            for child in children:
                self.parent[child] = node
            todo += children

    def all(self, *kinds: type[N]) -> list[N]:
        """Every node of these types, by place."""
        found = [cast(N, node) for kind in kinds for node in self._by_type[kind]]
        return sorted(found, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))

    def parents(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the nearest outwards."""
        while node in self.parent:
            node = self.parent[node]
            yield node

    def function(self, node: ast.AST) -> Function | None:
        """The function around the node."""
        return next((p for p in self.parents(node) if isinstance(p, Function)), None)

    def scope(self, node: ast.AST) -> Function | ast.Module:
        """The function around the node, or the module."""
        return self.function(node) or self.tree

    def within(self, node: ast.AST) -> Iterator[ast.AST]:
        """Nodes inside, not those of functions and classes defined there."""
        todo = list(self._children[node])
        while todo:
            here = todo.pop()
            yield here
            if not isinstance(here, Function | ast.Lambda | ast.ClassDef):
                todo += self._children[here]

    def calls(self, node: ast.AST) -> Iterator[ast.Call]:
        """Calls inside."""
        return (n for n in self.within(node) if isinstance(n, ast.Call))

    @cached_property
    def imports(self) -> dict[str, str]:
        """``DataLoader`` → ``torch.utils.data.DataLoader``, ``np`` → ``numpy``."""
        found = {}
        for plain in self.all(ast.Import):
            for alias in plain.names:
                found[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        for from_ in self.all(ast.ImportFrom):
            for alias in from_.names:
                found[alias.asname or alias.name] = f"{from_.module or ''}.{alias.name}"
        return found

    def full(self, node: ast.AST) -> str:
        """The dotted name with its import filled in: ``F.softmax`` → ``torch.nn.functional.softmax``."""
        head, dot, rest = dotted(node).partition(".")
        return self.imports.get(head, head) + dot + rest

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """Functions and methods by name."""
        found: dict[str, list[Function]] = defaultdict(list)
        for plain in self.all(ast.FunctionDef):
            found[plain.name].append(plain)
        for asynchronous in self.all(ast.AsyncFunctionDef):
            found[asynchronous.name].append(asynchronous)
        return found

    def called(self, call: ast.Call) -> list[Function]:
        """The functions of this file that a call may mean: ``train(…)``, ``self.train_step(…)``."""
        name = dotted(call.func)
        head, _, last = name.rpartition(".")
        return self.functions.get(last, []) if last and head in ("", "self") else []

    def assigned(self, scope: ast.AST, name: str) -> list[ast.expr]:
        """Values given to ``name`` in the scope, in order."""
        found = []
        for node in self.within(scope):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(dotted(t) == name for t in targets) and isinstance(node, ast.Assign):
                found.append(node.value)
        return sorted(found, key=lambda v: (v.lineno, v.col_offset))
