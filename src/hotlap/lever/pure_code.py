"""Whether a function's own code can do nothing but compute: read from its source, without running it.

What is not known to be harmless is a no. Allowed are arithmetic, control flow, comprehensions, the builtins and methods
listed here, and changes of lists, dicts and sets that the function itself has made. What it reads beside its arguments
and what it calls is told, for :mod:`hotlap.lever.pure_functions` to follow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType

from hotlap.lever.source_tree import source_tree

__all__ = ["READING", "Body", "body_of"]

_NODES = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.keyword, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.While,
    ast.If, ast.Return, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Raise, ast.Assert, ast.Try, ast.ExceptHandler,
    ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.IfExp, ast.Name, ast.Constant, ast.Attribute,
    ast.Subscript, ast.Slice, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.comprehension, ast.JoinedStr, ast.FormattedValue, ast.Starred, ast.Lambda,
    ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip
_BUILTINS = frozenset((
    "abs", "all", "any", "ascii", "bin", "bool", "bytes", "chr", "complex", "dict", "divmod", "enumerate",
    "filter", "float", "format", "frozenset", "hash", "hex", "int", "isinstance", "len", "list", "map", "max",
    "min", "oct", "ord", "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum",
    "tuple", "zip", "ValueError", "KeyError", "IndexError", "TypeError", "RuntimeError", "StopIteration",
    "Exception", "AssertionError",
))  # fmt: skip
_NEW = frozenset((
    "bool", "bytes", "chr", "dict", "float", "frozenset", "int", "len", "list", "ord", "range", "round", "set",
    "sorted", "str", "sum", "tuple",
))  # fmt: skip
"""Builtins whose result is nobody else's."""
READING = frozenset((
    "capitalize", "casefold", "center", "copy", "count", "decode", "difference", "encode", "end", "endswith",
    "expandtabs", "find", "findall", "finditer", "format", "fullmatch", "get", "group", "groupdict", "groups",
    "index", "intersection", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isdisjoint", "islower",
    "isnumeric", "isspace", "issubset", "issuperset", "istitle", "isupper", "items", "join", "keys", "ljust",
    "lower", "lstrip", "match", "most_common", "partition", "removeprefix", "removesuffix", "replace", "rfind",
    "rindex", "rjust", "rpartition", "rsplit", "rstrip", "search", "span", "split", "splitlines", "start",
    "startswith", "strip", "sub", "subn", "swapcase", "title", "tolist", "translate", "union", "upper",
    "values", "zfill",
))  # fmt: skip
_NEW_BY_METHOD = frozenset((
    "split", "rsplit", "splitlines", "copy", "tolist", "findall", "join", "encode", "lower", "upper", "strip",
    "replace",
))  # fmt: skip
_CHANGING = frozenset((
    "add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "reverse", "setdefault", "sort",
    "update",
))  # fmt: skip
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.Constant, ast.JoinedStr,
             ast.BinOp, ast.Compare, ast.UnaryOp)  # fmt: skip


@dataclass
class Body:
    """What a function reads and calls apart from its arguments and locals."""

    attributes: set[str] = field(default_factory=set)
    """Of its first argument."""
    methods: set[str] = field(default_factory=set)
    """Of its first argument, called."""
    names: set[str] = field(default_factory=set)
    """Of its module."""
    members: set[tuple[str, str]] = field(default_factory=set)
    """(name of its module, attribute of that), read or called."""
    new_result: bool = False
    """Whatever it returns was made by this call: nobody else can be holding it."""


def body_of(function: FunctionType, bound: bool) -> Body | None:
    """None where the code does, or may do, more than compute. ``bound``: the first argument is its object."""
    source = source_tree(function)
    tree = source.body[0] if source is not None and source.body else None
    if not isinstance(tree, ast.FunctionDef) or tree.decorator_list or tree.name != function.__name__:
        return None
    given = tree.args
    defaults = [*given.defaults, *(d for d in given.kw_defaults if d is not None)]
    if given.vararg or given.kwarg or not all(isinstance(d, ast.Constant) for d in defaults):
        return None
    _without_annotations(tree)
    return _Reader(tree, given.args[0].arg if bound and given.args else None).read()


class _Reader:
    def __init__(self, tree: ast.FunctionDef, own: str | None) -> None:
        self._tree, self._own, self._body = tree, own, Body()
        nodes = list(ast.walk(tree))
        self._nodes = nodes
        arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self._locals = arguments | stored | {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}
        given = [(name, value) for name, value in _assigned(nodes) if _is_new(value)]
        told = {id(name) for name, _ in given} | {id(n.target) for n in nodes if isinstance(n, ast.AugAssign)}
        self._unknown = arguments | {
            n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and id(n) not in told
        }

    def read(self) -> Body | None:
        called = {id(node.func) for node in self._nodes if isinstance(node, ast.Call)}
        bases = {id(node.value) for node in self._nodes if isinstance(node, ast.Attribute)}
        for node in self._nodes[1:]:
            if not isinstance(node, _NODES) or not self._allowed(node, called, bases):
                return None
        results = [node.value for node in self._nodes if isinstance(node, ast.Return) and node.value is not None]
        self._body.new_result = all(_is_new(r) or (isinstance(r, ast.Name) and self._made(r.id)) for r in results)
        return self._body

    def _made(self, name: str) -> bool:
        """Whether a local can hold nothing but what this call has made."""
        return name in self._locals and name not in self._unknown

    def _allowed(self, node: ast.AST, called: set[int], bases: set[int]) -> bool:
        if isinstance(node, ast.FunctionDef):
            return False
        if isinstance(node, ast.Call):
            return self._callable(node.func)
        if isinstance(node, ast.Name):
            return id(node) in called or id(node) in bases or self._name(node)
        if isinstance(node, ast.Attribute):
            return isinstance(node.ctx, ast.Load) and (id(node) in called or self._attribute(node))
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return isinstance(node.value, ast.Name) and self._made(node.value.id)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            return node.target.id in self._arguments() or self._made(node.target.id)
        return True

    def _arguments(self) -> set[str]:
        return {arg.arg for arg in self._tree.args.args} - {self._own}

    def _name(self, node: ast.Name) -> bool:
        if node.id == self._own:
            return False  # the object itself goes somewhere
        if node.id not in self._locals and node.id not in _BUILTINS:
            self._body.names.add(node.id)
        return True

    def _attribute(self, node: ast.Attribute) -> bool:
        if node.attr.startswith("__") or not isinstance(node.value, ast.Name):
            return False
        if node.value.id == self._own:
            self._body.attributes.add(node.attr)
            return True
        if node.value.id not in self._locals:
            self._body.members.add((node.value.id, node.attr))
            return True
        return False

    def _callable(self, func: ast.expr) -> bool:
        if isinstance(func, ast.Name):
            if func.id not in _BUILTINS:
                self._body.names.add(func.id)
            return func.id not in self._locals
        if not isinstance(func, ast.Attribute):
            return False
        base = func.value
        if isinstance(base, ast.Name) and base.id == self._own:
            self._body.methods.add(func.attr)
            return True
        if isinstance(base, ast.Name) and base.id not in self._locals | _BUILTINS:
            self._body.members.add((base.id, func.attr))
            return True
        if func.attr in _CHANGING:
            return isinstance(base, ast.Name) and self._made(base.id)
        return func.attr in READING


def _without_annotations(tree: ast.FunctionDef) -> None:
    tree.returns = None
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)


def _assigned(nodes: list[ast.AST]) -> Iterator[tuple[ast.Name, ast.expr]]:
    """(local, what it is given), a tuple on both sides taken apart."""
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target, node.value
        if not isinstance(node, ast.Assign):
            continue
        value = node.value
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target, value
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from ((t, v) for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, ast.Name))


def _is_new(value: ast.expr) -> bool:
    """Whether an expression makes what it gives (or gives what cannot be changed)."""
    if isinstance(value, ast.IfExp):
        return _is_new(value.body) and _is_new(value.orelse)
    if isinstance(value, ast.Tuple):
        return all(_is_new(v) for v in value.elts)
    if isinstance(value, ast.Call):
        func = value.func
        return (isinstance(func, ast.Name) and func.id in _NEW) or (
            isinstance(func, ast.Attribute) and func.attr in _NEW_BY_METHOD
        )
    return isinstance(value, _DISPLAYS)
