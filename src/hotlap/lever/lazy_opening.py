"""Methods that open something at their first use, and keep it: ``if self.file is None: self.file = open(self.path)``.

With everything open, such a function stores nothing any more: it can be read, and spared, like one that never did.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from hotlap.lever.source_tree import source_tree

__all__ = ["Settled", "settled", "stores_in_place"]

_OF_THE_PROCESS = ("getpid", "os.getpid")
_OF_ITS_OBJECT = ("hasattr", "getattr")
_ELSEWHERE = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)


@dataclass(frozen=True)
class Settled:
    """A function as it is once nothing is left to open."""

    code: CodeType
    """Without the blocks that open, which do not run while ``tests`` say so."""
    tests: tuple[Callable[[Any], Any], ...] = ()
    """Of its object: whether the next call opens something. May raise whatever the script's own test would."""


def settled(function: FunctionType) -> Settled:
    """The method ``function``; its own code where it opens nothing, or where its source cannot be found.

    A block opens if its condition knows the object and the process alone, if it gives no value to the rest of the
    function, and if it stores an attribute of the object or calls a method of it. So does all that comes behind
    ``if self.file is not None: return self.file``.
    """
    as_it_is = Settled(function.__code__)
    tree = _tree_of(function)
    if tree is None or not (given := [*tree.args.posonlyargs, *tree.args.args]):
        return as_it_is
    without = _Without(tree, given[0].arg, function)
    tree.body = without.turned(tree.body)
    without.generic_visit(tree)
    code = _compiled(tree, function) if without.tests else None
    tests = [_asked(test, given[0].arg, function) for test in without.tests]
    known = tuple(test for test in tests if test is not None)
    return as_it_is if code is None or len(known) < len(tests) else Settled(code, known)


def stores_in_place(function: FunctionType) -> bool:
    """Whether it puts something into a container of its object's or of a module's (``self.files[path] = …``)."""
    tree = _tree_of(function)
    if tree is None:
        return any(i.opname == "STORE_SUBSCR" for i in dis.get_instructions(function.__code__))
    known = function.__code__.co_varnames + function.__code__.co_cellvars
    own = known[0] if function.__code__.co_argcount else None
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            into: ast.expr = node
            while isinstance(into, ast.Subscript | ast.Attribute):
                is_attribute, into = isinstance(into, ast.Attribute), into.value
            if isinstance(into, ast.Name) and (into.id not in known or (into.id == own and is_attribute)):
                return True
    return False


def _tree_of(function: FunctionType) -> ast.FunctionDef | None:
    """None where its source is not what runs: edited since, or not to be had."""
    source = source_tree(function)
    tree = source.body[0] if source is not None and source.body else None
    if not isinstance(tree, ast.FunctionDef):
        return None
    tree.decorator_list = []
    again = _compiled(tree, function)
    return tree if again is not None and _marks(again) == _marks(function.__code__) else None


def _marks(code: CodeType) -> list[Any]:
    """What differs between two codes that do different things. A name that the module has imported is asked for
    attributes in another way than one of which nothing is known, which a method alone is compiled with."""
    does = [i.opname.replace("LOAD_METHOD", "LOAD_ATTR") for i in dis.get_instructions(code)]
    return [code.co_names, code.co_varnames, *does]


def _compiled(tree: ast.FunctionDef, function: FunctionType) -> CodeType | None:
    """The code of ``tree`` in a class of the name that the function's has: ``__names`` and ``super()`` are its."""
    inside = function.__qualname__.rpartition(".")[0].rpartition(".")[2]
    outer: list[ast.stmt] = [tree]
    if inside.isidentifier():
        outer = [ast.ClassDef(inside, bases=[], keywords=[], body=outer, decorator_list=[])]
    module = ast.fix_missing_locations(ast.Module(outer, type_ignores=[]))
    return _find(compile(module, function.__code__.co_filename, "exec", dont_inherit=True), tree.name)


def _find(code: CodeType, name: str) -> CodeType | None:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            found = const if const.co_name == name else _find(const, name)
            if found is not None:
                return found
    return None


def _asked(test: ast.expr, own: str, function: FunctionType) -> Callable[[Any], Any] | None:
    """``test`` as a function of the object that it calls ``own``."""
    given = ast.arguments([], [ast.arg(own)], kwonlyargs=[], kw_defaults=[], defaults=[])
    asks = ast.FunctionDef("asks", given, [ast.Return(test)], decorator_list=[])
    code = _compiled(asks, function)
    return None if code is None else FunctionType(code, function.__globals__)


class _Without(ast.NodeTransformer):
    """Takes the blocks away that open, and gathers their conditions."""

    def __init__(self, tree: ast.FunctionDef, own: str, function: FunctionType) -> None:
        self._own, self._function = own, function
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self._names = [node.id for node in names]
        self._is_kept = not any(node.id == own and not isinstance(node.ctx, ast.Load) for node in names)
        self.tests: list[ast.expr] = []

    def turned(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """With ``if not …: (all that follows)`` in place of ``if …: return``, where what follows opens."""
        for number, node in enumerate(body):
            ends = isinstance(node, ast.If) and not node.orelse and [type(part) for part in node.body] == [ast.Return]
            if ends and isinstance(node, ast.If) and self._is_of_the_object(node.test):
                rest = [part.value for part in body[number + 1 :] if isinstance(part, ast.Return)]
                others = [part for part in body[number + 1 :] if not isinstance(part, ast.Return)]
                if others and self._opens(others) and all(part is None or self._is_own(part) for part in rest):
                    opening = ast.If(ast.UnaryOp(ast.Not(), node.test), others, node.body)
                    return [*body[:number], opening]
        return body

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    visit_Lambda = visit_ClassDef = visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_If(self, node: ast.If) -> Any:
        if not (self._is_of_the_object(node.test) and self._opens(node.body)):
            return self.generic_visit(node)
        self.tests.append(node.test)
        return [self.visit(statement) for statement in node.orelse] or ast.Pass()

    def _is_of_the_object(self, test: ast.expr) -> bool:
        names_it = any(self._is_own(node) or self._is_asked(node) for node in ast.walk(test))
        return self._is_kept and names_it and self._tells(test)

    def _tells(self, test: ast.expr) -> bool:
        if isinstance(test, ast.BoolOp):
            return all(map(self._tells, test.values))
        if isinstance(test, ast.UnaryOp):
            return self._tells(test.operand)
        if isinstance(test, ast.Compare):
            return all(map(self._tells, [test.left, *test.comparators]))
        if isinstance(test, ast.Call):
            return (ast.unparse(test.func) in _OF_THE_PROCESS and not test.args) or self._is_asked(test)
        return isinstance(test, ast.Constant) or self._is_own(test)

    def _opens(self, body: list[ast.stmt]) -> bool:
        nodes = [node for statement in body for node in ast.walk(statement)]
        if any(isinstance(node, _ELSEWHERE) for node in nodes):
            return False
        names = [node for node in nodes if isinstance(node, ast.Name)]
        inside = [node.id for node in names]
        given = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        given |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
        given |= {(node.asname or node.name).partition(".")[0] for node in nodes if isinstance(node, ast.alias)}
        if any(inside.count(name) < self._names.count(name) for name in given):
            return False  # the rest of the function has it too
        known = {*self._function.__code__.co_varnames} - {self._own}
        if known & set(inside) - given:
            return False  # opens what an argument says
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        stored = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
        return any(map(self._is_own, [*called, *stored]))

    def _is_own(self, node: ast.AST) -> bool:
        """An attribute of the object."""
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self._own

    def _is_asked(self, node: ast.AST) -> bool:
        """``hasattr(self, "name")``, or ``getattr`` with plain values."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OF_ITS_OBJECT):
            return False
        given = [*node.args, *(word.value for word in node.keywords)]
        of_own = any(isinstance(a, ast.Name) and a.id == self._own for a in given[:1])
        return of_own and all(isinstance(a, ast.Constant) for a in given[1:])
