"""Loops over the samples of a batch, by syntax: over its size with an index, or over samples that become batches of
one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from hotlap.trial.loop_headers import Comprehension
from hotlap.trial.names import called_name, names_in

__all__ = ["batch_sizes", "over_samples"]

_GATHERERS = {"append", "extend", "cat", "concat", "concatenate", "stack", "max", "min", "maximum", "minimum"}
"""They put together what each round gives, and make no round wait for the one before."""


def _is_batch(node: ast.expr) -> bool:
    """``x.shape[0]``, ``x.size(0)`` or ``len(x)``; not of what the module itself has: layers, heads, weights."""
    text = ast.unparse(node)
    if text.startswith(("self.", "len(self.")):
        return False
    return text.endswith((".shape[0]", ".size(0)")) or (isinstance(node, ast.Call) and text.startswith("len("))


def batch_sizes(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that hold the number of samples: ``B = x.shape[0]``, ``B, T, C = x.shape``."""
    names = set()
    for node in nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name) and _is_batch(value):
            names.add(target.id)
        first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and value.slice.lower is None:
            value = value.value  # ``B, T = x.shape[:2]``
        if isinstance(first, ast.Name) and ast.unparse(value).endswith((".shape", ".size()")):
            names.add(first.id)
    return names


def over_samples(loop: ast.AST, batch: set[str]) -> str:
    """What a loop over samples goes over; empty for another loop.

    ``for i in range(<batch size>)`` whose body takes ``x[i]``; ``for a, b in zip(...)`` whose body calls something with
    ``a[None]`` or ``a.unsqueeze(0)``; comprehensions alike. Not the loop that the steps themselves are rounds of, and
    none that hands a state from round to round: that one goes over time, or over layers.
    """
    body: list[ast.AST]
    if isinstance(loop, ast.For):
        heads, body = [(loop.target, loop.iter)], list(loop.body)
    elif isinstance(loop, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        heads, body = [(g.target, g.iter) for g in loop.generators], [loop.elt]
    else:
        return ""
    inside = [node for part in body for node in ast.walk(part)]
    calls = [node for node in inside if isinstance(node, ast.Call)]
    if any(isinstance(c.func, ast.Attribute) and c.func.attr == "step" for c in calls) or _carries(inside):
        return ""
    for target, over in heads:
        if _by_length(target, over, inside):
            return ast.unparse(over)
        if _by_index(target, over, batch):
            index = ast.unparse(target)
            taken = [node for node in inside if _takes(node, index)]
            layers = any(_takes(c.func, index) for c in calls)
            if isinstance(loop, Comprehension):  # [x[i] for i in ...] alone is a list of views
                taken = [part for c in calls for part in _given(c) if any(_takes(n, index) for n in ast.walk(part))]
            if taken and not layers:
                return ast.unparse(over)
        elif any(
            _batch_of_one(part, names_in(target))
            for c in calls
            if called_name(c) not in _GATHERERS
            for part in _given(c)
        ):
            return ast.unparse(over)
    return ""


def _by_index(target: ast.expr, over: ast.expr, batch: set[str]) -> bool:
    """``for i in range(<batch size>)``."""
    if not isinstance(target, ast.Name) or not isinstance(over, ast.Call) or called_name(over) != "range":
        return False
    if len(over.args) != 1:
        return False
    bound = over.args[0]
    return _is_batch(bound) or (isinstance(bound, ast.Name) and bound.id in batch)


def _by_length(target: ast.expr, over: ast.expr, inside: list[ast.AST]) -> bool:
    """``for i, n in enumerate(lengths)`` whose body takes ``x[i, :n]``."""
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or called_name(over) != "enumerate":
        return False
    index, length = map(ast.unparse, target.elts)
    return any(
        isinstance(node, ast.Subscript) and _takes(node, index)
        and any(isinstance(p, ast.Slice) and p.upper and ast.unparse(p.upper) == length for p in ast.walk(node.slice))
        for node in inside
    )  # fmt: skip


def _takes(node: ast.AST, index: str) -> bool:
    """``x[i]``, ``x[i, 0]``, ``x[i : i + 1]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return False
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    lower = first.lower if isinstance(first, ast.Slice) else first
    return isinstance(lower, ast.Name) and lower.id == index


def _batch_of_one(node: ast.expr, samples: set[str]) -> bool:
    """``a[None]``, ``a[None, ...]`` or ``a.unsqueeze(0)``."""
    if isinstance(node, ast.Subscript):
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        made = isinstance(first, ast.Constant) and first.value is None
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "unsqueeze":
        given = _given(node)
        made = len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value == 0
        node = node.func
    else:
        return False
    root: ast.expr = node.value
    while isinstance(root, ast.Subscript | ast.Attribute):  # ``sample["image"][None]``
        root = root.value
    return made and isinstance(root, ast.Name) and root.id in samples


def _carries(inside: list[ast.AST]) -> bool:
    """Whether a call of the body is given what the round before assigned: ``h = self.cell(x[t], h)``. A sum is not."""
    statements = sorted((n for n in inside if isinstance(n, ast.stmt)), key=lambda s: s.lineno)
    assigned = {name for s in statements if isinstance(s, ast.Assign) for name in _bound(s)}
    for statement in statements:
        for call in (n for n in ast.walk(statement) if isinstance(n, ast.Call) and called_name(n) not in _GATHERERS):
            if assigned & {name for part in _given(call) for name in names_in(part)}:
                return True
        if isinstance(statement, ast.Assign):
            assigned -= set(_bound(statement))
    return False


def _bound(statement: ast.Assign) -> Iterator[str]:
    for target in statement.targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)]
