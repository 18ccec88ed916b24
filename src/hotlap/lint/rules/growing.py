"""What grows from step to step: a sum that keeps every graph, a tensor that is copied to get longer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.lint.loops import Training
from hotlap.lint.place import problem
from hotlap.lint.problem import Problem
from hotlap.lint.script import Loop, Script, dotted, keyword
from hotlap.records.edits import Edit

CAUSES = ("memory-leak", "repeated-cat")


def find(script: Script, training: Training) -> Iterator[Problem]:
    """Both kinds."""
    for loop in training.steps:
        yield from _sums(script, training, loop)
    for node in script.all(ast.Assign):
        yield from _cats(script, node)


def _sums(script: Script, training: Training, loop: Loop) -> Iterator[Problem]:
    """``total += loss`` after ``loss.backward()``, where nothing goes backward from the total."""
    scope = script.scope(loop)
    went = {dotted(c.func).removesuffix(".backward") for c in training.backwards if training.step_loop(c) is loop}
    losses = {n for n in went & training.losses(loop) if _stays_tensor(script, loop, n)}
    for node in script.within(loop):
        if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
            continue
        value, total = dotted(node.value), dotted(node.target)
        if value not in losses or not total or total in losses or training.step_loop(node) is not loop:
            continue
        if _goes_backward(script, scope, total) or _set_within(script, loop, total) or _no_grad(script, node):
            continue
        edit = Edit("replace_value", script.name, node.lineno, target=total, code="{value}.detach()")
        yield problem(
            script, node, "memory-leak", f"`{total}` keeps the graph of every step's `{value}` alive.",
            f"Add {value}.detach().", [edit],
        )  # fmt: skip


def _stays_tensor(script: Script, loop: Loop, name: str) -> bool:
    """Never given a number in the loop (``loss = loss.item()``)."""
    return not any(
        word in ast.unparse(v) for v in script.assigned(loop, name) for word in ("item()", "float(", "detach", ".data")
    )


def _goes_backward(script: Script, scope: ast.AST, total: str) -> bool:
    """Whether the total may be what is trained: backward on it, or on something it goes into; or it is returned."""
    for node in script.within(scope):
        if isinstance(node, ast.Call) and dotted(node.func).endswith("backward") and total in ast.unparse(node):
            return True
    return False


def _set_within(script: Script, loop: Loop, total: str) -> bool:
    return bool(script.assigned(loop, total))


def _no_grad(script: Script, node: ast.AST) -> bool:
    around = [p for p in script.parents(node) if isinstance(p, ast.With)]
    return any("grad" in ast.unparse(i.context_expr) for w in around for i in w.items)


def _cats(script: Script, node: ast.Assign) -> Iterator[Problem]:
    """``x = torch.cat([x, more])`` in a loop that does nothing else with x."""
    name, call = dotted(node.targets[0]), node.value
    if not name or not isinstance(call, ast.Call) or script.full(call.func) not in ("torch.cat", "torch.concat"):
        return
    parts = call.args[0] if call.args else None
    if not isinstance(parts, ast.List | ast.Tuple) or name not in [dotted(p) for p in parts.elts]:
        return
    dim = call.args[1] if len(call.args) > 1 else keyword(call, "dim")
    if dim is not None and not (isinstance(dim, ast.Constant) and dim.value == 0):
        return  # features side by side, as many as a network has branches
    loop = next((p for p in script.parents(node) if isinstance(p, Loop)), None)
    if loop is None or script.scope(loop) is not script.scope(node) or _few(loop):
        return
    function = script.function(node)
    if function is not None and any("jit" in ast.unparse(d) for d in function.decorator_list):
        return  # written for a compiler, which may know no lists
    uses = [n for n in script.within(loop) if isinstance(n, ast.Name | ast.Attribute) and dotted(n) == name]
    inside = [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute) and dotted(n) == name]
    if len(uses) > len(inside) or len(inside) > 2:
        return
    yield problem(
        script, node, "repeated-cat", f"`{name}` is copied whole at each turn of the loop to get longer.",
        "Append to a list, and call torch.cat once behind the loop.",
    )  # fmt: skip


def _few(loop: Loop) -> bool:
    """A loop over a short literal: nothing grows far."""
    if not isinstance(loop, ast.For):
        return False
    if isinstance(loop.iter, ast.List | ast.Tuple):
        return True
    small = isinstance(loop.iter, ast.Call) and dotted(loop.iter.func) == "range" and len(loop.iter.args) <= 2
    last = loop.iter.args[-1] if small and isinstance(loop.iter, ast.Call) and loop.iter.args else None
    return isinstance(last, ast.Constant) and isinstance(last.value, int) and last.value <= 16
