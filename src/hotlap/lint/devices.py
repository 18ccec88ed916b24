"""Whether a loader's batches are on a device already, as far as the file shows what makes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.lint.loaders import Loader, given
from hotlap.lint.script import Function, Script, dotted, keyword

__all__ = ["made_on_device"]

_DEFAULTS = ("torch.set_default_device", "torch.set_default_tensor_type")


def made_on_device(script: Script, loader: Loader) -> bool:
    """Whether its data set or its collate function puts tensors on a device: those cannot be pinned."""
    if any(script.full(c.func) in _DEFAULTS and "cpu" not in ast.unparse(c) for c in script.all(ast.Call)):
        return True
    dataset = loader.call.args[0] if loader.call.args else keyword(loader.call, "dataset")
    todo: list[ast.AST] = [part for part in (dataset, loader.option("collate_fn")) if part is not None]
    seen: set[ast.AST] = set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if any(_goes_to_device(inner) for inner in ast.walk(node)):
            return True
        todo += _behind(script, node)
    return False


def _behind(script: Script, node: ast.AST) -> Iterator[ast.AST]:
    """What the node is made of: functions and classes of the file that it names or calls, values of its variables."""
    code = isinstance(node, Function | ast.ClassDef)
    bases = {dotted(b) for b in node.bases} if isinstance(node, ast.ClassDef) else set()
    called = {dotted(c.func).removeprefix("self.") for c in ast.walk(node) if isinstance(c, ast.Call)}
    names = (
        {dotted(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)} if not code else bases | called
    )
    for name in names - {""}:
        yield from script.functions.get(name, [])
        yield from (c for c in script.all(ast.ClassDef) if c.name == name)
        if not code:
            yield from _values(script, node, name)


def _values(script: Script, node: ast.AST, name: str) -> Iterator[ast.expr]:
    """What is assigned to the name around the node, or given for it by callers of the function there."""
    function = script.function(node)
    for scope in (function, script.tree):
        if scope is not None:
            yield from given(script, scope, name)
    params = [a.arg for a in function.args.args] if function is not None else []
    if function is None or name not in params:
        return
    place = params.index(name) - (params[0] == "self")
    for call in script.all(ast.Call):
        if function in script.called(call):
            value = keyword(call, name) or (call.args[place] if place < len(call.args) else None)
            if value is not None:
                yield value


def _goes_to_device(node: ast.AST) -> bool:
    """``.cuda()``, ``.to(device)``, ``device=…``: of anything but the CPU."""
    if not isinstance(node, ast.Call):
        return False
    device = keyword(node, "device") or keyword(node, "map_location")
    if device is not None and not _is_cpu(device):
        return True
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "cuda":
        return True
    return node.func.attr == "to" and bool(node.args) and not _is_cpu(node.args[0]) and not _is_dtype(node.args[0])


def _is_cpu(node: ast.expr) -> bool:
    return "cpu" in ast.unparse(node) or (isinstance(node, ast.Constant) and node.value is None)


def _is_dtype(node: ast.expr) -> bool:
    name = dotted(node) if isinstance(node, ast.Attribute) else ""
    return name.startswith("torch.") or name.endswith("dtype")
