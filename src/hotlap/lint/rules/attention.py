"""Attention written out: softmax of a product of queries and keys, times the values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.lint.loops import Training
from hotlap.lint.place import problem
from hotlap.lint.problem import Problem
from hotlap.lint.script import Function, Script, dotted

CAUSES = ("attention-by-hand",)

_PRODUCTS = ("matmul", "bmm")
_BETWEEN = ("masked_fill", "masked_fill_", "dropout", "type_as", "to", "float", "type", "half", "softmax", "contiguous")
"""What may happen to scores and weights on their way; anything else is more than plain attention."""


def find(script: Script, training: Training) -> Iterator[Problem]:
    """Functions in which scores and weights are used for nothing else."""
    modules = {
        dotted(n.targets[0]) for n in script.all(ast.Assign)
        if isinstance(n.value, ast.Call) and script.full(n.value.func) == "torch.nn.Softmax"
    } | {"softmax"}  # fmt: skip
    for function in {f: None for c in script.all(ast.Call) if _names_softmax(c, modules) and (f := script.function(c))}:
        softmax = [c for c in script.calls(function) if _names_softmax(c, modules)]
        fused = any("scaled_dot_product" in dotted(c.func) for c in script.calls(function))
        if len(softmax) == 1 and not fused and _is_attention(script, function, softmax[0]):
            yield problem(
                script, softmax[0], "attention-by-hand",
                f"`{function.name}` writes the whole attention matrix to memory, twice.",
                "Call torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask).",
            )  # fmt: skip


def _names_softmax(call: ast.Call, modules: set[str]) -> bool:
    return _attr(call) == "softmax" or dotted(call.func) in modules


def _attr(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_attention(script: Script, function: Function, softmax: ast.Call) -> bool:
    """Weights from a product with a transposed factor, used once: in a product."""
    target = script.parent[softmax]
    if not isinstance(target, ast.Assign) or len(target.targets) != 1 or not isinstance(target.targets[0], ast.Name):
        return False
    given = softmax.args[0] if softmax.args and _is_function(script, softmax) else softmax.func
    if given is softmax.func and isinstance(given, ast.Attribute):
        given = given.value
    scores = given
    while isinstance(scores, ast.BinOp) and isinstance(scores.op, ast.Add | ast.Mult | ast.Div):
        scores = scores.left
    weights = target.targets[0].id
    if isinstance(scores, ast.Name):
        values = script.assigned(function, scores.id)
        made = any(_scaled_product(v) for v in values)
        plain = all(_scaled_product(v) or _passes(v, scores.id) for v in values)
        if not (made and plain):
            return False
        if scores.id != weights and not _only_in(script, function, scores.id, softmax):
            return False
    elif not _scaled_product(scores):
        return False
    return _weights_go_into_a_product(script, function, weights, target)


def _is_function(script: Script, call: ast.Call) -> bool:
    """``F.softmax(scores, dim)`` or a module's ``self.softmax(scores)``, rather than ``scores.softmax(dim)``."""
    name = script.full(call.func)
    return name.startswith(("torch.", "self.")) or isinstance(call.func, ast.Name)


def _product(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The factors of a matrix product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if isinstance(node, ast.Call) and (_attr(node) in _PRODUCTS) and node.args:
        if len(node.args) == 2:
            return node.args[0], node.args[1]
        if isinstance(node.func, ast.Attribute):
            return node.func.value, node.args[0]
    return None


def _scaled_product(node: ast.expr) -> bool:
    """``q @ k.transpose(-2, -1)``, scaled or not."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        node = node.left if not isinstance(node.left, ast.Name | ast.Constant | ast.Attribute) else node.right
    factors = _product(node)
    if factors is None:
        return False
    right = factors[1]
    return (isinstance(right, ast.Call) and _attr(right) in ("transpose", "permute", "t")) or (
        isinstance(right, ast.Attribute) and right.attr in ("T", "mT")
    )


def _passes(node: ast.expr, name: str) -> bool:
    """``scores.masked_fill(...)``, ``scores / scale``, ``scores + mask``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.Div | ast.Sub):
        return dotted(node.left) == name
    if not isinstance(node, ast.Call):
        return False
    owner = dotted(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if owner != name and (not node.args or dotted(node.args[0]) != name):
        return False
    return _attr(node) in _BETWEEN or any(word in dotted(node.func).lower() for word in ("drop", "softmax", "attend"))


def _only_in(script: Script, function: Function, name: str, softmax: ast.Call) -> bool:
    """The scores are read by themselves and the softmax alone."""
    for node in script.within(function):
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
            continue
        holders = list(script.parents(node))
        own = any(isinstance(p, ast.Assign) and dotted(p.targets[0]) == name for p in holders)
        if not own and softmax not in holders:
            return False
    return True


def _weights_go_into_a_product(script: Script, function: Function, name: str, made: ast.Assign) -> bool:
    products = 0
    for node in script.within(function):
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
            continue
        holders = list(script.parents(node))
        own = [p for p in holders if isinstance(p, ast.Assign) and dotted(p.targets[0]) == name]
        if any(_passes_weight(p.value) or _passes(p.value, name) for p in own):
            continue
        if made in holders:
            continue
        product = next(
            (p for p in holders if isinstance(p, ast.expr) and (f := _product(p)) and _first(f[0]) == name), None
        )
        if product is None:
            return False
        products += 1
    return products == 1


def _first(node: ast.expr) -> str:
    """The name that a factor is, also through a dropout."""
    if isinstance(node, ast.Call) and "dropout" in dotted(node.func).lower() and node.args:
        node = node.args[0]
    return dotted(node)


def _passes_weight(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and (
        any(word in dotted(node.func).lower() for word in ("drop", "softmax", "attend")) or _attr(node) in _BETWEEN
    )
