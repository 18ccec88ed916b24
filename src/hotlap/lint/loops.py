"""Where a script trains: its step loops, the epochs around them, and what runs at each step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.lint.script import Function, Loop, Script, dotted, names_in

__all__ = ["Training"]

_LEAVING_METHODS = {"item", "cpu", "numpy", "tolist", "size", "shape", "dim", "ndim"}
_LEAVING_FUNCTIONS = {"len", "float", "int", "range", "time.time"}
_BACKWARD = ("backward", "manual_backward")


class Training:
    """The training loops of one script. A loop is a step loop when it is the innermost around a backward."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.backwards = [c for c in script.all(ast.Call) if _goes_backward(c)]
        self.steps = list(dict.fromkeys(self._step_loops())) if self.backwards else []
        self.epochs = {id(loop): epoch for loop in self.steps if (epoch := self._around(loop)) is not None}

    def _step_loops(self) -> Iterator[Loop]:
        inner: dict[int, Function] = {}
        for call in self.backwards:
            loop = self._loop(call)
            function = self.script.function(call)
            if loop is not None:
                yield loop
            elif function is not None:
                inner[id(function)] = function
        for call in self.script.all(ast.Call):
            if any(id(f) in inner for f in self.script.called(call)) and (loop := self._loop(call)) is not None:
                yield loop

    def _loop(self, node: ast.AST) -> Loop | None:
        """The innermost loop of the same function."""
        for parent in self.script.parents(node):
            if isinstance(parent, Loop):
                return parent
            if isinstance(parent, Function | ast.Lambda):
                return None
        return None

    def _around(self, loop: Loop) -> Loop | None:
        """The epoch loop: the next loop outwards, or the one that calls this loop's function."""
        outer = self._loop(loop)
        if outer is not None:
            return outer
        function = self.script.function(loop)
        if function is None:
            return None
        for call in self.script.all(ast.Call):
            if function in self.script.called(call) and (found := self._loop(call)) is not None:
                return found
        return None

    def step_loop(self, node: ast.AST) -> Loop | None:
        """The step loop that the node is in, within its function."""
        if not self.steps:
            return None
        for parent in self.script.parents(node):
            if isinstance(parent, Loop) and parent in self.steps:
                return parent
            if isinstance(parent, Function | ast.Lambda):
                return None
        return None

    def each_step(self, node: ast.AST) -> Loop | None:
        """The step loop in which the node runs at each step: no condition, handler or early ``continue`` before it."""
        loop = self.step_loop(node)
        if loop is None:
            return None
        here = node
        for parent in self.script.parents(node):
            if isinstance(parent, ast.If | ast.IfExp | ast.ExceptHandler | ast.BoolOp | ast.Match):
                return None
            for name in ("body", "orelse", "finalbody"):
                block = getattr(parent, name, None)
                if isinstance(block, list) and here in block:
                    if parent is loop and name == "orelse":
                        return None
                    if any(_may_continue(s) for s in block[: block.index(here)]):
                        return None
            if parent is loop:
                break
            here = parent
        return loop

    def tensors(self, loop: Loop) -> set[str]:
        """Names that hold what the step computes: the loss, what it is made of, and what is made of these."""
        assigns = [n for n in self.script.within(loop) if isinstance(n, ast.Assign) and isinstance(n.value, ast.AST)]
        found = self.losses(loop)
        for node in sorted(assigns, key=lambda a: a.lineno, reverse=True):
            if _targets(node) & found and not isinstance(node.value, ast.Constant):
                found |= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)} & {
                    t for a in assigns if _has_call(a.value) for t in _targets(a)
                }
        for node in sorted(assigns, key=lambda a: a.lineno):
            if names_in(node.value) & found and not _leaves_tensors(node.value):
                found |= _targets(node)
        for node in assigns:
            if _leaves_tensors(node.value):
                found -= _targets(node)
        return found

    def losses(self, loop: Loop) -> set[str]:
        """Names on which backward is called in the loop."""
        found = set()
        for call in self.backwards:
            if self.step_loop(call) is loop and isinstance(call.func, ast.Attribute):
                owner = call.func.value
                found.add(dotted(owner))
                found |= {dotted(a) for a in call.args}
                if isinstance(owner, ast.Call):  # scaler.scale(loss).backward()
                    found |= {dotted(a) for a in owner.args}
                if isinstance(owner, ast.BinOp):
                    found |= names_in(owner)
        return {f for f in found if f and f not in ("self", "accelerator", "fabric", "self.accelerator", "self.fabric")}


def _goes_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _BACKWARD


def _may_continue(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(isinstance(n, ast.Continue) for n in ast.walk(statement))


def _targets(node: ast.Assign) -> set[str]:
    return {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def _has_call(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def _leaves_tensors(node: ast.AST) -> bool:
    """Whether the value is a number, an array or a shape rather than a tensor on the device."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr in _LEAVING_METHODS:
            return True
        if isinstance(part, ast.Call) and dotted(part.func) in _LEAVING_FUNCTIONS:
            return True
    return False
