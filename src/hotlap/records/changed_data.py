"""What a script changes of a loader's data set after the loader is made: workers that stay alive keep their first copy.

Read by lint and patch from one file's tree. What other files do to the data set is not seen.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from types import UnionType

__all__ = ["changed_data"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.AsyncFor | ast.While
_Key = tuple[ast.AST, str]
"""A scope and a name in it: ``data``, ``self.data``, ``loader.dataset``."""
_LOOKS = {"__len__", "__getitem__", "index", "count", "keys", "values", "items", "get", "copy"}
_HOLDS = ("Subset", "ConcatDataset", "random_split")


def changed_data(tree: ast.Module, line: int) -> tuple[str, int] | None:
    """(what the script does, its line) for the first change of the data set of a ``DataLoader(…)`` that begins on
    ``line``; None where none is seen."""
    file = _File(tree)
    for call in file.calls:
        if call.lineno == line and _dotted(call.func).endswith("DataLoader"):
            for node in file.changes(call):
                return ast.unparse(node).partition("\n")[0], node.lineno
    return None


def _dotted(node: ast.AST | None) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


class _File:
    """A tree with parents, and who holds the data set in it."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parent = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        nodes = sorted(self.parent, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))
        self.calls = [n for n in nodes if isinstance(n, ast.Call)]
        self.assigns = [n for n in nodes if isinstance(n, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete)]
        self.functions = {n.name: n for n in nodes if isinstance(n, _Function)}
        self.returns = [n for n in nodes if isinstance(n, ast.Return)]
        self.given = list(self._given())

    def changes(self, loader: ast.Call) -> Iterator[ast.Call | ast.stmt]:
        """By kind, then by place: assignments to parts of the data set, and calls that may change it."""
        held = self._held(loader)
        for node in self.assigns:
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            parts = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
            owners = [p.value for p in parts if isinstance(p, ast.Attribute | ast.Subscript)]
            if any(self._is_of(owner, held) for owner in owners) and not self._is_before(node, loader):
                yield node
        for call in self.calls:
            if self._changes(call, held) and not self._is_before(call, loader):
                yield call

    def _changes(self, call: ast.Call, held: set[_Key]) -> bool:
        if isinstance(call.func, ast.Attribute) and self._is_of(call.func.value, held):
            return call.func.attr not in _LOOKS and not self._only_reads(call.func.attr)
        given = any(self._key(arg) in held for arg in [*call.args, *(k.value for k in call.keywords)])
        name = _dotted(call.func)
        last = name.rpartition(".")[2]
        if name in ("setattr", "delattr"):
            return given
        known = last in self.functions or hasattr(builtins, name) or last[:1].isupper() or last in _HOLDS
        return given and not known and not name.startswith("torch.") and bool(self._loops(call))

    def _only_reads(self, method: str) -> bool:
        """Whether a method of this name, where the file defines one, leaves its object as it is."""
        function = self.functions.get(method)
        if function is None:
            return False
        for node in ast.walk(function):
            inner = node.value if isinstance(node, ast.Attribute | ast.Subscript) else None
            stored = inner is not None and not isinstance(getattr(node, "ctx", None), ast.Load)
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            owner = inner if stored else node.func if called else None  # type: ignore[attr-defined]
            while isinstance(owner, ast.Attribute | ast.Subscript | ast.Call):
                owner = owner.func if isinstance(owner, ast.Call) else owner.value
            if isinstance(owner, ast.Name) and owner.id == "self":
                return False
        return True

    def _held(self, loader: ast.Call) -> set[_Key]:
        """Names of the data set and of what it is made of, wherever the file hands them on after the loader is made."""
        given = [k.value for k in loader.keywords if k.arg in ("dataset", "collate_fn")]
        found = {key for value in [*loader.args[:1], *given] for key in self._within(value)}
        found |= {(scope, f"{name}.dataset") for scope, name in self._named(loader)}
        return self._closed(self._closed(found, self._came_from), lambda held: self._goes_to(held, loader))

    def _closed(self, found: set[_Key], step: Callable[[set[_Key]], Iterator[_Key]]) -> set[_Key]:
        while not (more := set(step(found))) <= found:
            found = found | more
        return found

    def _came_from(self, held: set[_Key]) -> Iterator[_Key]:
        """What was given for the parameters, and in assignments."""
        for node in self.assigns:
            if isinstance(node, ast.Assign) and any(self._key(t) in held for t in _flat(node.targets)):
                yield from self._within(node.value)
        for function, param, value in self.given:
            if (function, param) in held and (key := self._key(value)) is not None:
                yield key

    def _goes_to(self, held: set[_Key], loader: ast.Call) -> Iterator[_Key]:
        """Other names of it, and parameters that are given it once the loader is made."""
        for node in self.assigns:
            if isinstance(node, ast.Assign) and self._is_of(node.value, held):
                yield from (key for t in node.targets if (key := self._key(t)) is not None)
        for function, param, value in self.given:
            key = self._key(value)
            call = self._around(value, ast.Call)
            if key is None or not isinstance(call, ast.Call) or self._is_before(call, loader):
                continue
            for scope, of in held:
                if scope is key[0] and f"{of}.".startswith(f"{key[1]}."):
                    yield function, param + of[len(key[1]) :]

    def _within(self, value: ast.expr) -> Iterator[_Key]:
        """The names of a data set: itself, or what a part of it is taken of."""
        if isinstance(value, ast.Call) and _dotted(value.func).rpartition(".")[2] in _HOLDS:
            for arg in value.args:
                yield from self._within(arg)
        elif isinstance(value, ast.List | ast.Tuple):
            for part in value.elts:
                yield from self._within(part)
        elif (key := self._key(value)) is not None:
            yield key

    def _named(self, loader: ast.Call, depth: int = 0) -> Iterator[_Key]:
        """Names of the loader: that it is given, and those of what a function hands out that makes it."""
        parent = self.parent[loader]
        names = [k for t in _flat(parent.targets) if (k := self._key(t))] if isinstance(parent, ast.Assign) else []
        yield from names
        function = self._around(loader, _Function)
        made = {name for _, name in names}
        for out in self.returns:
            inside = [out.value, *getattr(out.value, "elts", [])]
            hands_out = loader in inside or any(_dotted(v) in made for v in inside if v is not None)
            if isinstance(function, _Function) and self._around(out, _Function) is function and hands_out and depth < 3:
                for call in self.calls:
                    if _dotted(call.func).rpartition(".")[2] == function.name:
                        yield from self._named(call, depth + 1)

    def _given(self) -> Iterator[tuple[ast.AST, str, ast.expr]]:
        """(function, parameter, value) of the calls of the file's own functions."""
        for call in self.calls:
            function = self.functions.get(_dotted(call.func).rpartition(".")[2])
            if function is not None:
                params = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
                params = params[1:] if params[:1] == ["self"] else params
                yield from ((function, param, value) for param, value in zip(params, call.args, strict=False))
                yield from ((function, k.arg, k.value) for k in call.keywords if k.arg is not None)

    def _is_of(self, node: ast.AST, held: set[_Key]) -> bool:
        while isinstance(node, ast.Subscript):
            node = node.value
        key = self._key(node)
        return key is not None and any(key[0] is scope and f"{key[1]}.".startswith(f"{of}.") for scope, of in held)

    def _key(self, node: ast.AST) -> _Key | None:
        name = _dotted(node)
        root = name.partition(".")[0]
        if not root:
            return None
        if root == "self":
            return self._around(node, ast.ClassDef) or self.tree, name
        scope: ast.AST = node
        while (around := self._around(scope, _Function)) is not None:
            scope = around
            own = {a.arg for a in ast.walk(scope) if isinstance(a, ast.arg)}
            own |= {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            if root in own:
                return scope, name
        return self.tree, name

    def _around(self, node: ast.AST, kind: type | UnionType) -> ast.AST | None:
        here = self.parent.get(node)
        while here is not None and not isinstance(here, kind):
            here = self.parent.get(here)
        return here

    def _loops(self, node: ast.AST) -> list[ast.AST]:
        """Those around the node within its function."""
        found: list[ast.AST] = []
        here = self.parent.get(node)
        while here is not None and not isinstance(here, _Function):
            found += [here] if isinstance(here, _Loop) else []
            here = self.parent.get(here)
        return found

    def _is_before(self, node: ast.Call | ast.stmt, loader: ast.Call) -> bool:
        """Whether it is done once, before the loader is made: above it in no loop with it, or above the one call of the
        function that makes it."""
        made: ast.AST = loader
        for _ in range(4):
            function = self._around(made, _Function)
            if self._around(node, _Function) is function:
                shared = set(self._loops(node)) & set(self._loops(made))
                return node.lineno < getattr(made, "lineno", 0) and not shared
            name = getattr(function, "name", "")
            name = (
                getattr(self._around(function, ast.ClassDef), "name", "") if name == "__init__" and function else name
            )
            calls = [c for c in self.calls if _dotted(c.func).rpartition(".")[2] == name]
            if len(calls) != 1:
                break
            made = calls[0]
        return False


def _flat(targets: list[ast.expr]) -> list[ast.expr]:
    return [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
