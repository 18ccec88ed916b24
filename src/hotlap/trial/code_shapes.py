"""Shapes of source that cost time, found by syntax alone: attention written out, tensors that grow in a loop or with
each call, loops over samples, tensors made on the host; batches filled up to one length, double precision; and options
by which a framework was told what costs time.

A shape is no finding: a cause wants samples of the script's stacks on its lines as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.records.code_shape import CodeShape
from hotlap.trial.attention_shape import written_out
from hotlap.trial.loop_headers import Comprehension
from hotlap.trial.sample_loops import batch_sizes, over_samples

__all__ = ["find_shapes"]

_GROWERS = {"cat", "concat", "concatenate", "stack", "hstack", "vstack", "append"}
_MAKERS = {
    "tensor", "as_tensor", "from_numpy", "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange", "eye",
    "linspace",
}  # fmt: skip
_OPTIONS = {
    "val_check_interval": "validation-cadence", "check_val_every_n_epoch": "validation-cadence",
    "eval_steps": "validation-cadence", "save_steps": "checkpoint-blocking",
    "every_n_train_steps": "checkpoint-blocking", "detect_anomaly": "autograd-debug",
}  # fmt: skip
"""Arguments of Lightning's Trainer and ModelCheckpoint and of transformers' TrainingArguments, and their causes."""
_TEXT = 200
Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_shapes(tree: ast.Module, lines: list[str]) -> list[CodeShape]:
    """All shapes of one file; ``file`` is left empty."""
    found: list[CodeShape] = []

    def add(kind: str, node: ast.stmt | ast.expr | ast.keyword, function: str, spared: set[int], detail: str) -> None:
        text = lines[node.lineno - 1].strip()[:_TEXT] if node.lineno <= len(lines) else ""
        found.append(CodeShape(kind, "", node.lineno, function, frozenset(spared), text, detail))

    cut = _cut_to_length(tree)
    for name, body in _scopes(tree):
        for use, used, detail in written_out(body):
            add("attention-by-hand", use, name, used, detail)
        for grown, target in _growing_by_calls(body, cut):
            add("repeated-cat", grown, name, _span(grown), target)
        for told in (n for n in _own(body) if isinstance(n, ast.keyword) and n.arg in _OPTIONS):
            if not (isinstance(told.value, ast.Constant) and not told.value.value):  # False, None, 0: switched off
                add(_OPTIONS[str(told.arg)], told, name, {told.lineno}, str(told.arg))
        for node in (n for n in _own(body) if isinstance(n, ast.Assign | ast.Expr | ast.Return)):
            if _doubles(node):
                add("precision", node, name, _span(node), "float64")
        for filled in _filled_up(body):
            add("padding", filled, name, _span(filled), ast.unparse(filled.targets[0]))
        batch = batch_sizes(_own(body))
        for loop in (n for n in _own(body) if isinstance(n, ast.For | Comprehension)):
            bound = over_samples(loop, batch)
            if bound:
                work = loop.body if isinstance(loop, ast.For) else [loop]
                add("samples-loop", loop, name, {line for part in work for line in _span(part)}, bound)
        for loop in (n for n in _own(body) if isinstance(n, ast.For | ast.AsyncFor | ast.While)):
            for grown, target in _growing(loop, rolling=True):
                add("repeated-cat", grown, name, _span(grown), target)
            for made in _host_made(loop):
                add("host-tensors", made, name, _span(made), ast.unparse(made)[:60])
        if name == "forward":
            for made in (m for s in body for m in _host_made(s)):
                add("host-tensors", made, name, _span(made), ast.unparse(made)[:60])
    return list({(s.kind, s.line): s for s in found}.values())


def _scopes(tree: ast.Module) -> Iterator[tuple[str, list[ast.stmt]]]:
    yield "<module>", tree.body
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node.name, node.body


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Nodes of a body without those of functions and classes in it."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


def _span(node: ast.stmt | ast.expr) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _called(call: ast.expr) -> tuple[str, str]:
    """(module, function) of ``torch.cat(...)``; empty where it is no such call."""
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        return call.func.value.id, call.func.attr
    return "", ""


def _growing(inside: ast.stmt, rolling: bool = False) -> Iterator[tuple[ast.Assign, str]]:
    """``x = torch.cat([x, ...])`` and its kin; ``rolling``: ``x = torch.cat([x[1:], ...])`` too."""
    for node in ast.walk(inside):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        module, function = _called(node.value)
        if function not in _GROWERS or module not in ("torch", "np", "numpy") or not isinstance(node.value, ast.Call):
            continue
        target = ast.unparse(node.targets[0])
        parts = [p for a in node.value.args[:2] for p in (a.elts if isinstance(a, ast.List | ast.Tuple) else [a])]
        if rolling:
            parts = [part.value if isinstance(part, ast.Subscript) else part for part in parts]
        if target in (ast.unparse(part) for part in parts):
            yield node, target


def _growing_by_calls(body: list[ast.stmt], cut: set[str]) -> Iterator[tuple[ast.Assign, str]]:
    """``self.x = torch.cat([self.x, ...])``: what an object keeps grows with each call, wherever the loop is."""
    for node in _own(body):
        if isinstance(node, ast.Assign):
            for grown, target in _growing(node):
                if isinstance(grown.targets[0], ast.Attribute) and target not in cut:
                    yield grown, target


def _cut_to_length(tree: ast.Module) -> set[str]:
    """Attributes that some line of the file makes a part of themselves: ``self.x = self.x[-n:]``."""
    return {
        ast.unparse(node.targets[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
        and isinstance(node.value, ast.Subscript) and ast.unparse(node.value.value) == ast.unparse(node.targets[0])
    }  # fmt: skip


def _doubles(statement: ast.AST) -> bool:
    """``net.double()``, ``torch.set_default_dtype(torch.float64)``, ``net.to(torch.float64)``."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            told = [ast.unparse(a) for a in [*node.args, *(k.value for k in node.keywords)]]
            wide = "torch.float64" in told or "torch.double" in told
            if (node.func.attr == "double" and not told) or (node.func.attr in ("to", "set_default_dtype") and wide):
                return True
    return False


def _filled_up(body: list[ast.stmt]) -> Iterator[ast.Assign]:
    """``x = torch.zeros(...)`` of a function that then puts the samples into it one by one: ``x[i, :n] = sample``."""
    own = list(_own(body))
    filled = {
        ast.unparse(target.value)
        for loop in own if isinstance(loop, ast.For)
        for node in ast.walk(loop) if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Tuple)
        and any(isinstance(part, ast.Slice) for part in target.slice.elts)
    }  # fmt: skip
    for node in (n for n in own if isinstance(n, ast.Assign)):
        if _called(node.value)[1] in _MAKERS and ast.unparse(node.targets[0]) in filled:
            yield node


def _host_made(inside: ast.AST) -> Iterator[ast.Call]:
    """``torch.zeros(...).to(device)``: made on the host, then copied."""
    for node in ast.walk(inside):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
            module, function = _called(node.func.value)
            made = node.func.value
            placed = isinstance(made, ast.Call) and any(k.arg == "device" for k in made.keywords)
            if module == "torch" and function in _MAKERS and not placed:
                yield node
