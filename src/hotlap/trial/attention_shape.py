"""Attention written out: within one function, a product of two matrices goes through a softmax into another product."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["written_out"]

_PRODUCTS = {"matmul", "bmm", "baddbmm", "einsum"}


def written_out(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, set[int], str]]:
    """(statement of the softmax, lines from product to product, its text), in order; names are followed."""
    scores: dict[str, int] = {}  # names that hold a product, and the line where it was made
    weights: dict[str, tuple[ast.stmt, int]] = {}  # names that hold a softmax of one
    for statement in _simple(body):
        names, values = _stored(statement)
        for node in ast.walk(statement):
            softmax = _softmax_of(node)
            if softmax is not None:
                first = _product_line(softmax, scores)
                if first is not None:
                    weights.update(dict.fromkeys(names, (statement, first)))
            multiplied = _factors(node)
            for factor in multiplied:
                inner = _softmax_of(factor)
                first = _product_line(inner, scores) if inner is not None else None
                known = next((weights[n] for n in _names(factor) if n in weights), None)
                source = (statement, first) if first is not None else known
                if source is not None:
                    yield source[0], set(range(source[1], (statement.end_lineno or 0) + 1)), ast.unparse(source[0])[:60]
        soft = {name for name in names if name in weights and weights[name][0] is statement}
        for name in names - soft:
            held = next((weights[n] for v in values for n in _names(v) if n in weights), None)
            from_product = next((line for v in values if (line := _product_line(v, scores)) is not None), None)
            weights.pop(name, None)
            scores.pop(name, None)
            if held is not None and not any(_has_product(v) for v in values):
                weights[name] = held  # dropout(weights), weights.to(dtype)
            elif from_product is not None:
                scores[name] = from_product


def _simple(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements without bodies, in order, also those inside ifs and loops, not those of inner functions."""
    for statement in body:
        inner = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if any(inner):
            for part in inner:
                yield from _simple(part)
        else:
            yield statement


def _stored(statement: ast.stmt) -> tuple[set[str], list[ast.expr]]:
    if isinstance(statement, ast.Assign):
        return {t.id for t in statement.targets if isinstance(t, ast.Name)}, [statement.value]
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return {statement.target.id}, [statement.value, ast.Name(statement.target.id, ast.Load())]
    return set(), []


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _factors(node: ast.AST) -> list[ast.expr]:
    """What a matrix product multiplies; empty when it is none."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return [node.left, node.right]
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _PRODUCTS:
            is_method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in ("torch", "np")
            receiver = [node.func.value] if is_method and isinstance(node.func, ast.Attribute) else []
            return [*receiver, *node.args]
    return []


def _has_product(node: ast.AST) -> bool:
    return any(_factors(n) for n in ast.walk(node))


def _product_line(node: ast.AST, scores: dict[str, int]) -> int | None:
    """Line of the product that an expression holds, directly or by name."""
    for inner in ast.walk(node):
        if _factors(inner):
            return int(getattr(inner, "lineno", 0)) or None
    return next((scores[n] for n in sorted(_names(node)) if n in scores), None)


def _softmax_of(node: ast.AST) -> ast.expr | None:
    """The argument of a softmax: ``x.softmax(-1)``, ``F.softmax(x)``, ``torch.softmax(x)``, ``self.softmax(x)``."""
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name != "softmax":
        return None
    takes = [a for a in node.args if not isinstance(a, ast.Constant)]
    takes = [a for a in takes if not (isinstance(a, ast.UnaryOp) and isinstance(a.operand, ast.Constant))]
    if takes:
        return takes[0]
    return node.func.value if isinstance(node.func, ast.Attribute) else None
