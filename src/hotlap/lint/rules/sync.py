"""The host waits for the device at each step: ``.item()``, ``.cpu()``, a printed tensor."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from hotlap.lint.loops import Training
from hotlap.lint.place import problem
from hotlap.lint.problem import Problem
from hotlap.lint.script import Loop, Script, dotted

CAUSES = ("sync",)

_WAITING = ("item", "cpu", "numpy", "tolist")
_DEVICE = ("cuda", "device", "accelerator", "fabric", "xpu", "mps")


def find(script: Script, training: Training) -> Iterator[Problem]:
    """One problem per step loop, at the first line that waits. Silent in scripts that name no device."""
    if not _names_a_device(script):
        return
    tensors = {id(loop): training.tensors(loop) for loop in training.steps}
    found: dict[int, list[ast.Call]] = defaultdict(list)
    loops: dict[int, Loop] = {}
    for call in script.all(ast.Call):
        loop = training.each_step(call)
        if loop is not None and _waits(call, tensors[id(loop)]):
            found[id(loop)].append(call)
            loops[id(loop)] = loop
    for calls in found.values():
        lines = sorted({c.lineno for c in calls})
        more = f" (also on line {', '.join(map(str, lines[1:]))})" if lines[1:] else ""
        what = ast.unparse(calls[0])
        yield problem(
            script, calls[0], "sync",
            f"`{what if len(what) < 60 else what[:57] + '...'}` waits for the device at each step{more}.",
            "Keep the tensor (`.detach()`) and read it every so many steps, or once an epoch.",
        )  # fmt: skip


def _names_a_device(script: Script) -> bool:
    names = {n.id for n in script.all(ast.Name)} | {n.attr for n in script.all(ast.Attribute)}
    return any(word in names for word in _DEVICE)


def _waits(call: ast.Call, tensors: set[str]) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _WAITING:
        return _root(call.func.value) in tensors
    if isinstance(call.func, ast.Name) and call.func.id == "print":
        return any(_shows(arg, tensors) for arg in call.args)
    return isinstance(call.func, ast.Name) and call.func.id == "float" and any(dotted(a) in tensors for a in call.args)


def _shows(arg: ast.expr, tensors: set[str]) -> bool:
    """A tensor that print turns into text: itself, or in an f-string."""
    if isinstance(arg, ast.JoinedStr):
        return any(isinstance(v, ast.FormattedValue) and _shows(v.value, tensors) for v in arg.values)
    return isinstance(arg, ast.Name) and arg.id in tensors


def _root(node: ast.expr) -> str:
    """``loss`` of ``loss.detach().mean()``; empty when a shape or a function's result is in between."""
    while True:
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Attribute):
            if node.attr in ("shape", "size", "device", "dtype", "cpu", "item", "numpy"):
                return ""
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return dotted(node)
