"""Which lines each loop of a file repeats, and how the loop is to be written in a report.

A loop that feeds what one layer gives to the next (``for block in self.blocks: x = block(x)``) is left out: it is a
deep network, whose layers cannot be computed at once, and no loop of small operations.
"""

from __future__ import annotations

import ast

from hotlap.trial.names import names_in

__all__ = ["Comprehension", "Loop", "header", "loops_of"]

Loop = ast.For | ast.AsyncFor | ast.While
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def loops_of(tree: ast.Module, lines: list[str]) -> list[tuple[int, int, str]]:
    """(first line, last line, text) of each loop's header and body, of a comprehension as a whole; outer ones first."""
    found: list[tuple[int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, Loop):
            if not _layer_by_layer(node):
                text = lines[node.lineno - 1].strip() if node.lineno <= len(lines) else ""
                found.append((node.lineno, node.body[-1].end_lineno or node.lineno, text))
        elif isinstance(node, Comprehension):
            found.append((node.lineno, node.end_lineno or node.lineno, header(node)))
    return sorted(found, key=lambda loop: (loop[0], -loop[1]))


def header(node: Comprehension) -> str:
    """A comprehension's loops as ``for`` statements have them: ``for t in range(n)``."""
    loops = [(ast.unparse(g.target), ast.unparse(g.iter)) for g in node.generators]
    return " ".join(f"for {target.removeprefix('(').removesuffix(')')} in {over}" for target, over in loops)


def _layer_by_layer(loop: Loop) -> bool:
    """Whether a loop over modules gives to one what came out of another: what it assigns goes into their calls."""
    if isinstance(loop, ast.While):
        return False
    over = names_in(loop.target)
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    assigned: set[str] = set()
    for node in inside:
        if isinstance(node, ast.Assign):
            assigned |= {name for target in node.targets for name in _targets(target)}
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            assigned |= _targets(node.target)
    modules = _over_modules(loop.iter)
    for call in (node for node in inside if isinstance(node, ast.Call)):
        given = {name for part in [*call.args, *(k.value for k in call.keywords)] for name in names_in(part)}
        if _calls_one_of(call, over, modules) and given & assigned:
            return True
    return False


def _targets(node: ast.expr) -> set[str]:
    """Names that an assignment binds or changes: ``x``, ``x`` and ``a`` of ``x, a``, ``outs`` of ``outs[i]``."""
    if isinstance(node, ast.Tuple | ast.List):
        return {name for part in node.elts for name in _targets(part)}
    while isinstance(node, ast.Subscript | ast.Starred):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _over_modules(over: ast.expr) -> bool:
    """Whether a loop's iterable lies in an attribute, as modules do: ``self.blocks``, ``enumerate(self.encoder.h)``."""
    while isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.args:
        over = over.args[0]
    while isinstance(over, ast.Subscript):
        over = over.value
    return isinstance(over, ast.Attribute)


def _calls_one_of(call: ast.Call, over: set[str], modules: bool) -> bool:
    """``block(x)``, ``self.blocks[i](x)``, ``checkpoint(block, x)``, ``getattr(self, f"block{i}")(x)``; where the loop
    is over modules, ``block.attention(x)``."""
    function = call.func
    if isinstance(function, ast.Name):
        first = names_in(call.args[0]) if call.args and isinstance(call.args[0], ast.Name) else set()
        return function.id in over or (function.id == "checkpoint" and bool(first & over))
    if isinstance(function, ast.Subscript):
        return bool(names_in(function.slice) & over)
    if isinstance(function, ast.Call):
        return isinstance(function.func, ast.Name) and function.func.id == "getattr" and bool(names_in(function) & over)
    while isinstance(function, ast.Attribute):
        function = function.value
    return modules and isinstance(function, ast.Name) and function.id in over
