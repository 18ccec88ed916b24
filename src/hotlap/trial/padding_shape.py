"""Lines that fill samples up to a length, by syntax alone: stores into arrays, lists behind lists, library calls."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from hotlap.trial.names import called_name, names_in

__all__ = ["filled_up"]

_MAKERS = {"zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_full", "zeros_like", "full_like"}
_PADS = {"pad", "pad_sequence", "enable_padding", "pad_sequences", "DataCollatorWithPadding"}
"""torch.nn.functional, numpy, tokenizers and transformers, Keras."""
_JOINS = {"cat", "concat", "concatenate", "hstack"}
_TOLD = {"padding": ("True", "'max_length'", "'longest'"), "pad_to_max_length": ("True",)}
"""Arguments of transformers' tokenizers."""
Simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
Found = ast.stmt | ast.expr | ast.keyword


def filled_up(own: Iterable[ast.AST]) -> Iterator[tuple[Found, str]]:
    """The nodes of a function's own statements that pad, and what they fill up."""
    nodes = list(own)
    stored = {ast.unparse(target.value) for target in _stores(nodes)}
    short = {
        target.id
        for node in nodes if isinstance(node, ast.Assign) and _subtracts(node.value)
        for target in node.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    for node in nodes:
        if isinstance(node, ast.While) and (filled := _appended(node)):
            yield node, filled
        if not isinstance(node, Simple):
            continue
        if (
            isinstance(node, ast.Assign)
            and called_name(node.value) in _MAKERS
            and ast.unparse(node.targets[0]) in stored
        ):
            yield node, ast.unparse(node.targets[0])
        if isinstance(node, ast.Assign) and _row_of(node.value) and ast.unparse(node.targets[0]) in stored:
            yield node, ast.unparse(node.targets[0])
        if isinstance(node, ast.AugAssign) and _filling(node.value, short):
            yield node, ast.unparse(node.target)
        for part in ast.walk(node):
            if isinstance(part, ast.BinOp) and _lists(part, short):
                yield part, ast.unparse(part)
            elif isinstance(part, ast.Call):
                yield from _calls(part, short)


def _row_of(value: ast.expr) -> bool:
    """``[PAD] * longest``."""
    return (
        isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult)
        and any(isinstance(part, ast.List) and len(part.elts) == 1 for part in (value.left, value.right))
    )  # fmt: skip


def _appended(loop: ast.While) -> str:
    """The list of ``while len(ids) < longest: ids.append(PAD)``; empty for another loop."""
    if len(loop.body) != 1:
        return ""
    call = loop.body[0].value if isinstance(loop.body[0], ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or called_name(call) != "append":
        return ""
    filled = ast.unparse(call.func.value)
    known = isinstance(call.args[0], ast.Constant | ast.Name)
    return filled if known and f"len({filled})" in ast.unparse(loop.test) else ""


def _stores(nodes: list[ast.AST]) -> Iterator[ast.Subscript]:
    """``x[i, :n] = sample`` in a loop, and ``x[:n] = sample``."""
    for node in nodes:
        if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Constant):
            continue
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
                if any(isinstance(p, ast.Slice) and (p.lower is None) != (p.upper is None) for p in parts):
                    yield target


def _subtracts(value: ast.expr) -> bool:
    """``longest - len(ids)``, however it is wrapped."""
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) for node in ast.walk(value))


def _filling(value: ast.expr, short: set[str]) -> bool:
    """``[PAD] * (longest - len(ids))``, or times a name that holds such a difference."""
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult)):
        return False
    for some, times in ((value.left, value.right), (value.right, value.left)):
        if isinstance(some, ast.List | ast.Tuple | ast.Constant):
            return _subtracts(times) or (isinstance(times, ast.Name) and times.id in short)
    return False


def _lists(node: ast.BinOp, short: set[str]) -> bool:
    """``ids + [PAD] * (longest - len(ids))``, in either order."""
    if not isinstance(node.op, ast.Add):
        return False
    pairs = ((node.left, node.right), (node.right, node.left))
    return any(
        isinstance(rest, ast.BinOp) and isinstance(rest.left, ast.List) and _filling(rest, short)
        for some, rest in pairs if not isinstance(some, ast.List)
    )  # fmt: skip


def _calls(call: ast.Call, short: set[str]) -> Iterator[tuple[Found, str]]:
    for told in call.keywords:
        if ast.unparse(told.value) in _TOLD.get(told.arg or "", ()):
            yield told, ast.unparse(call.func)
    if called_name(call) == "extend" and call.args and _filling(call.args[0], short):
        yield call, ast.unparse(call.func)
    if called_name(call) in _PADS or (called_name(call) == "zip_longest" and call.keywords):
        yield call, ast.unparse(call.func)
    joined = call.args[0] if called_name(call) in _JOINS and call.args else None
    if isinstance(joined, ast.List | ast.Tuple) and any(_blank(part, short) for part in joined.elts):
        yield call, ast.unparse(call.func)


def _blank(part: ast.expr, short: set[str]) -> bool:
    """``torch.zeros(longest - len(ids))``, or by a name that holds such a difference."""
    if called_name(part) not in _MAKERS or not isinstance(part, ast.Call):
        return False
    return any(_subtracts(size) or bool(names_in(size) & short) for size in part.args)
