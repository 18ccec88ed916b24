"""Where a network's call may be put under ``no_grad``: no gradient is lost there, as far as one file shows it.

Each function raises Unwritable where that is not sure: a training that silently trains less is the worst of patches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hotlap.patch.making import given
from hotlap.patch.models import calls_like_models, imported, model_names
from hotlap.patch.source import Source, Unwritable, dotted, root_name
from hotlap.patch.training import OPTIMIZERS, trains

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["check_frozen", "check_function", "check_validation", "lends_a_model"]

_BACKWARD = re.compile(r"(^|\.)(backward|grad)$")
_OF_TORCH = {"torch", "nn", "F", "np", "numpy", "math", "tqdm", "print"}


def check_frozen(source: Source, call: cst.Call) -> None:
    """The call of a network that is not trained: under this name no other is called here, and no optimizer has it."""
    import libcst as cst

    name = dotted(call.func) or ""
    if len(calls_like_models(source, source.place(call)[0])) > 1:
        raise Unwritable("another model is called on that line, which may have to be trained")
    if _is_optimized(source, name):
        raise Unwritable(f"an optimizer is given the parameters of {name}: it is trained")
    for parent in source.parents(call):
        if isinstance(parent, cst.For | cst.CompFor | cst.BaseComp):
            loops = [parent] if not isinstance(parent, cst.BaseComp) else source.inside(parent, cst.CompFor)
            if any(dotted(n) == root_name(name) for p in loops for n in source.inside(p.target, cst.Name)):
                raise Unwritable(f"{name} is one network after the other, of which some may be trained")
        if isinstance(parent, cst.FunctionDef):
            break
    function = source.function(call)
    if function is None or name not in [p.name.value for p in function.params.params]:
        return
    names = {n for n, _ in given(source, name, function)}
    if len(names) > 1 or None in names or any(_is_optimized(source, n or "") for n in names):
        raise Unwritable(f"{function.name.value} is called with other networks too, which may be trained")
    if not names and not trains(source, function):
        raise Unwritable(f"which networks {function.name.value} is called with is not seen in this file")


def _is_optimized(source: Source, name: str) -> bool:
    """Whether the file gives all parameters of what has this name to an optimizer."""
    import libcst as cst

    makers = [c for c in source.of_type(cst.Call) if (dotted(c.func) or "").rpartition(".")[2] in OPTIMIZERS]
    return f"{name}.parameters" in {dotted(c.func) for maker in makers for c in source.calls(maker)}


def check_validation(source: Source, call: cst.Call) -> None:
    """A forward among other code: the loop around it does not train."""
    loops = source.loops(call)
    if not loops or trains(source, loops[0]):
        raise Unwritable("training goes through the same line")


def check_function(source: Source, function: cst.FunctionDef) -> None:
    """A function that validates: nothing that it returns goes backward, as far as it is called in this file; if it is
    not, it looks like a validation."""
    import libcst as cst

    if _feeds_backward(source, function, set()):
        raise Unwritable(f"training goes through {function.name.value} as well")
    evaluates = any((dotted(c.func) or "").endswith(".eval") for c in source.inside(function, cst.Call))
    rounds = source.inside(function, cst.For, cst.While, cst.CompFor)
    if not evaluates and not rounds and not _called(source, function):
        raise Unwritable(f"whether training goes through {function.name.value} as well is not seen in this file")


def lends_a_model(source: Source, node: cst.CSTNode) -> bool:
    """Whether a model is given to a function of another file, which may want its gradients."""
    import libcst as cst

    elsewhere, models = imported(source) - _OF_TORCH, model_names(source)
    for call in source.inside(node, cst.Call):
        name = dotted(call.func) or ""
        other = root_name(name) in elsewhere and not name.rpartition(".")[2][:1].isupper()
        if other and any(dotted(a.value) in models for a in call.args):
            return True
    return False


def _called(source: Source, function: cst.FunctionDef) -> list[cst.Call]:
    """Calls of this name outside of the function."""
    import libcst as cst

    found = []
    for call in source.of_type(cst.Call):
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func)
        if name == function.name.value and not any(p is function for p in source.parents(call)):
            found.append(call)
    return found


def _feeds_backward(source: Source, function: cst.FunctionDef, seen: set[Any]) -> bool:
    """Whether what the function returns reaches a ``backward`` of a caller, or of a caller's caller."""
    import libcst as cst

    seen.add(function)
    for call in _called(source, function):
        caller: Any = source.function(call)
        scope: Any = caller or source.module
        names = _reached(source, scope, call)
        if _goes_backward(source, scope, call, names):
            return True
        returns = source.inside(scope, cst.Return) if caller is not None else []
        goes_on = caller is not None and caller not in seen and any(_has(source, r, call, names) for r in returns)
        if goes_on and _feeds_backward(source, caller, seen):
            return True
    return False


def _has(source: Source, node: Any, call: cst.Call, names: set[str]) -> bool:
    """Whether the node holds the call, or a name that its result has reached."""
    import libcst as cst

    if node is call or any(p is node for p in source.parents(call)):
        return True
    return any(dotted(n) in names for n in source.inside(node, cst.Name, cst.Attribute))


def _reached(source: Source, scope: Any, call: cst.Call) -> set[str]:
    """Names of the scope that hold what the call gave, or what was computed from it."""
    import libcst as cst

    names: set[str] = set()
    while True:
        before = len(names)
        for node in source.inside(scope, cst.Assign, cst.AugAssign, cst.AnnAssign, cst.For):
            value = node.iter if isinstance(node, cst.For) else node.value
            if value is None or not _has(source, value, call, names):
                continue
            targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
            names |= {dotted(n) or "" for t in targets for n in source.inside(t, cst.Name, cst.Attribute)}
        if len(names) == before:
            return names - {"", "self"}


def _goes_backward(source: Source, scope: Any, call: cst.Call, names: set[str]) -> bool:
    import libcst as cst

    for other in source.inside(scope, cst.Call):
        last = other.func.attr.value if isinstance(other.func, cst.Attribute) else dotted(other.func) or ""
        if _BACKWARD.search(last) and _has(source, other, call, names):
            return True
    return False
