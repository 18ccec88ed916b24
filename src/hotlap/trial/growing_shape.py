"""Tensors that are put together anew to grow, by syntax: in a loop, with each call of a method, through a function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

__all__ = ["growing_arguments", "growing_by_calls", "growing_in_loop"]

_GROWERS = {"cat", "concat", "concatenate", "stack", "hstack", "vstack", "append"}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Found = Iterator[tuple[ast.stmt, str]]


def _joined(value: ast.expr) -> list[ast.expr]:
    """What ``torch.cat([a, b])`` and its kin put together, cut to a length or not; empty where it is no such call."""
    value = value.value if isinstance(value, ast.Subscript) else value
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return []
    module = value.func.value
    if value.func.attr not in _GROWERS or not isinstance(module, ast.Name) or module.id not in ("torch", "np", "numpy"):
        return []
    return [p for a in value.args[:2] for p in (a.elts if isinstance(a, ast.List | ast.Tuple) else [a])]


def _pairs(assign: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """(target, value): one, or several of ``a, b = x, y``."""
    if len(assign.targets) != 1:
        return []
    target, value = assign.targets[0], assign.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _takes(value: ast.expr, text: str) -> bool:
    """Whether a value is a call that is given what ``text`` says."""
    return isinstance(value, ast.Call) and text in [ast.unparse(a) for a in value.args]


def _growing(nodes: Sequence[ast.AST], rolling: bool = False) -> Iterator[tuple[ast.Assign, ast.expr]]:
    """``x = torch.cat([x, ...])`` and its kin; ``rolling``: ``x = torch.cat([x[1:], ...])`` too.

    Not where each part is made from all before (``torch.cat([x, layer(x)])``, densely connected layers).
    """
    for node in nodes:
        for target, value in _pairs(node) if isinstance(node, ast.Assign) else []:
            parts, text = _joined(value), ast.unparse(target)
            whole = [part.value if rolling and isinstance(part, ast.Subscript) else part for part in parts]
            grows = text in [ast.unparse(p) for p in parts + whole]
            if grows and not any(_takes(part, text) for part in parts):
                assert isinstance(node, ast.Assign)
                yield node, target


def _remade(nodes: Sequence[ast.AST], text: str) -> bool:
    """Whether ``x = block(x)`` stands beside: what was put together is used up there, as in a decoder with skips."""
    return any(
        ast.unparse(target) == text and not _joined(value) and _takes(value, text)
        for node in nodes if isinstance(node, ast.Assign)
        for target, value in _pairs(node)
    )  # fmt: skip


def growing_in_loop(loop: ast.stmt) -> Found:
    """What grows with each turn of a loop."""
    nodes = list(ast.walk(loop))
    for node, target in _growing(nodes, rolling=True):
        if not _remade(nodes, ast.unparse(target)):
            yield node, ast.unparse(target)


def _root(target: ast.expr) -> str:
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def growing_by_calls(tree: ast.Module) -> Callable[[Sequence[ast.AST]], Found]:
    """``self.x = torch.cat([self.x, ...])``: what outlives a call grows with each one, wherever the loop is.

    One that is cut to a length is still copied whole each time.

    The function returned looks at the nodes of one function's body.
    """
    lasting = {"self"} | {
        n.id for s in tree.body for n in ast.walk(s)
        if isinstance(s, ast.Assign | ast.AnnAssign) and isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }  # fmt: skip

    def find(nodes: Sequence[ast.AST]) -> Found:
        outer = {n for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names}
        local = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - outer
        for node, target in _growing(nodes):
            kept = isinstance(target, ast.Attribute)
            kept = kept or (isinstance(target, ast.Subscript) and _root(target) in lasting - local)
            kept = kept or (isinstance(target, ast.Name) and target.id in outer)
            if kept:
                yield node, ast.unparse(target)

    return find


def growing_arguments(tree: ast.Module) -> Iterator[tuple[ast.stmt, str, str]]:
    """(statement, function, argument) of ``def push(bank, x): return torch.cat([bank, x])`` whose result is the next
    call's argument: ``bank = push(bank, x)`` in a loop, or ``self.bank = push(self.bank, x)``."""
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    for function in functions:
        for statement, argument in _grown_arguments(function):
            if _handed_on(tree, function, argument):
                yield statement, function.name, argument


def _grown_arguments(function: Function) -> Found:
    """Arguments that a function returns with more at their end."""
    names = {a.arg for a in function.args.args}
    nodes = list(ast.walk(function))
    stored = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    returned = [node for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    for node in returned:
        for part in _joined(node.value) if node.value is not None else []:
            if isinstance(part, ast.Name) and part.id in names and part.id not in stored:
                yield node, part.id
    for grown, target in _growing(nodes):
        name = ast.unparse(target)
        if name in names and stored.count(name) == 1 and name in [ast.unparse(r.value) for r in returned if r.value]:
            yield grown, name


def _handed_on(tree: ast.Module, function: Function, argument: str) -> bool:
    """Whether a call's result takes the place of that argument, and goes into the next call."""
    names = [a.arg for a in function.args.args]
    if names and names[0] in ("self", "cls"):
        names = names[1:]

    def again(nodes: Sequence[ast.AST], lasting: bool) -> bool:
        for node in nodes:
            for target, value in _pairs(node) if isinstance(node, ast.Assign) else []:
                if lasting and not isinstance(target, ast.Attribute | ast.Subscript):
                    continue
                if not (isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] == function.name):
                    continue
                given = dict(zip(names, value.args, strict=False)) | {k.arg: k.value for k in value.keywords if k.arg}
                text = ast.unparse(target)
                others = [other for other in nodes if other is not node]
                if argument in given and ast.unparse(given[argument]) == text and not _remade(others, text):
                    return True
        return False

    everything = list(ast.walk(tree))
    loops = [node for node in everything if isinstance(node, Loop)]
    return again(everything, lasting=True) or any(again(list(ast.walk(loop)), lasting=False) for loop in loops)
