"""Validation that records an autograd graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.lint.loops import Training
from hotlap.lint.place import problem
from hotlap.lint.problem import Problem
from hotlap.lint.script import Function, Loop, Script, dotted
from hotlap.records.edits import Edit

CAUSES = ("validation-grad",)

_NO_GRAPH = ("no_grad", "inference_mode", "set_grad_enabled", "volatile")
_NEEDS_GRAPH = ("backward", "requires_grad", "requires_grad_", "grad", "enable_grad", "attack", "perturb", "vjp", "jvp",
                "zero_grad", "step", "fit")  # fmt: skip
_TRUSTED = ("torch", "numpy", "tqdm", "time", "math")


def find(script: Script, training: Training) -> Iterator[Problem]:
    """A function that sets a model to eval and then loops over its forward, nowhere under no_grad."""
    if not any(True for _ in training.backwards) or _switched_off(script):
        return
    for function in script.all(ast.FunctionDef):
        call = _forward_in_loop(script, function)
        if call is None or _mentions(function, _NO_GRAPH + _NEEDS_GRAPH) or _called_without_graph(script, function):
            continue
        if any(_mentions(f, _NEEDS_GRAPH + _NO_GRAPH) for c in script.calls(function) for f in script.called(c)):
            continue
        if _lends(script, function, dotted(call.func)):
            continue
        edit = Edit("decorate", script.name, call.lineno, target="validation", code="@torch.no_grad()")
        yield problem(
            script, call, "validation-grad", f"`{function.name}` evaluates and records a graph that nobody uses.",
            "Put @torch.no_grad() on the function.", [edit],
        )  # fmt: skip


def _forward_in_loop(script: Script, function: Function) -> ast.Call | None:
    models = [dotted(c.func).removesuffix(".eval") for c in script.calls(function) if dotted(c.func).endswith(".eval")]
    for call in sorted(script.calls(function), key=lambda c: c.lineno):
        if dotted(call.func) in models and any(isinstance(p, Loop) for p in _inside(script, call, function)):
            return call
    return None


def _inside(script: Script, node: ast.AST, function: Function) -> Iterator[ast.AST]:
    for parent in script.parents(node):
        if parent is function:
            return
        yield parent


def _mentions(function: Function, words: tuple[str, ...]) -> bool:
    """The function, or a decorator of it, names one of the words."""
    for node in ast.walk(function):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if isinstance(node, ast.keyword):
            name = node.arg or ""
        if name in words:
            return True
    return False


def _lends(script: Script, function: Function, model: str) -> bool:
    """Whether a function of another file is given the model (``pgd(model, x, y)``) or an optimizer: it may train."""
    for call in script.calls(function):
        name = dotted(call.func)
        head = script.imports.get(name.partition(".")[0], "")
        if head and head.partition(".")[0] not in _TRUSTED and not name.rpartition(".")[2][:1].isupper():
            given = [dotted(a) for a in [*call.args, *(k.value for k in call.keywords)]]
            if any(g and (g == model or "optim" in g.rpartition(".")[2]) for g in given):
                return True
    return False


def _called_without_graph(script: Script, function: Function) -> bool:
    """Whether some caller in the file has switched recording off."""
    for call in script.all(ast.Call):
        if function in script.called(call) or dotted(call.func).rpartition(".")[2] == function.name:
            around = [p for p in script.parents(call) if isinstance(p, ast.With | ast.AsyncWith)]
            if any(word in ast.unparse(i.context_expr) for w in around for i in w.items for word in _NO_GRAPH):
                return True
            caller = script.function(call)
            if caller is not None and any(w in ast.unparse(d) for d in caller.decorator_list for w in _NO_GRAPH):
                return True
    return False


def _switched_off(script: Script) -> bool:
    """``torch.set_grad_enabled`` as a statement anywhere: what holds where cannot be seen."""
    return any(dotted(c.func).endswith("set_grad_enabled") and isinstance(script.parent[c], ast.Expr)
               for c in script.all(ast.Call))  # fmt: skip
