"""Whether what a model returns is one tensor, as far as the file shows it: by its uses, and by the model's class."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from hotlap.patch.making import assigned, innermost, making
from hotlap.patch.models import imported
from hotlap.patch.source import Source, Unwritable, dotted, root_name
from hotlap.patch.tensor_names import METHODS, PROPERTIES
from hotlap.patch.values import FAR, forward_of, functions_of, gives_torch, is_of_torch, values_of

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["refuse_no_tensor"]

Sign = Literal["parts", "tensor", "unknown", ""]
"""What a use says: it is taken apart, only a tensor is used so, it goes where nothing is seen of it, or nothing."""

_TAKES_APART = {"zip", "enumerate", "list", "tuple", "dict", "sum", "map", "iter", "len", "sorted"}
_OF_OTHERS_TOO = {
    "to",
    "cuda",
    "cpu",
    "data",
    "device",
    "index",
    "sort",
    "count",
    "size",
    "type",
    "add",
    "log",
    "float",
}
"""Attributes that are no tensors' alone."""
_NOT_ONE = {"LSTM", "GRU", "RNN", "MultiheadAttention", "AdaptiveLogSoftmaxWithLoss"}


def refuse_no_tensor(source: Source, calls: Sequence[cst.Call]) -> None:
    """Unwritable where one of a model's calls returns something else than a tensor, or may."""
    signs = [_signs(source, call, FAR) for call in calls]
    for call, held in zip(calls, signs, strict=True):
        if any(sign == "parts" for sign, _ in held) or _class_sign(source, call) == "parts":
            raise Unwritable(f"what the model returns is no plain tensor (line {source.place(call)[0]})")
    known = any(sign == "tensor" for held in signs for sign, _ in held)
    unknown = [node for held in signs for sign, node in held if sign == "unknown"]
    if unknown and not known and any(_class_sign(source, call) != "tensor" for call in calls):
        name, line = dotted(unknown[0].func) or "a function", source.place(unknown[0])[0]
        raise Unwritable(
            f"what the model returns goes to {name} (line {line}), and this file does not show whether it is a tensor: "
            "write .float() behind each tensor in it"
        )


def _signs(source: Source, call: cst.Call, far: int) -> list[tuple[Sign, Any]]:
    """What the uses of a call's result say, each with its place."""
    import libcst as cst

    parent = next(source.parents(call))
    if any(arg.star == "**" for arg in call.args):  # a batch of a library, whose models return objects
        return [("parts", call)]
    if isinstance(parent, cst.Return):
        function = source.function(call)
        callers = [c for c in source.of_type(cst.Call) if function and dotted(c.func) == function.name.value]
        if not callers or far < 2:
            return [("parts", call)]
        return [sign for caller in callers for sign in _signs(source, caller, far - 1)]
    if not isinstance(parent, cst.Assign):
        return [_sign(source, call, far)]
    target = parent.targets[0].target
    if not isinstance(target, cst.Name):
        return [("parts" if isinstance(target, cst.Tuple | cst.List) else "", call)]
    return _signs_of_name(source, source.function(call) or source.module, target.value, far)


def _signs_of_name(source: Source, scope: Any, name: str, far: int) -> list[tuple[Sign, Any]]:
    import libcst as cst

    return [_sign(source, n, far) for n in source.inside(scope, cst.Name) if n.value == name]


def _sign(source: Source, node: cst.BaseExpression, far: int) -> tuple[Sign, Any]:
    import libcst as cst

    parent: Any = next(source.parents(node))
    found: Sign = ""
    if isinstance(parent, cst.Attribute) and parent.value is node:
        found = _of_attribute(source, parent)
    elif isinstance(parent, cst.Subscript) and parent.value is node:
        found = "parts" if _names_a_part(parent) else "tensor"
    elif isinstance(parent, cst.For | cst.CompFor):
        found = "parts" if parent.iter is node else ""
    elif isinstance(parent, cst.Assign):
        apart = isinstance(parent.targets[0].target, cst.Tuple | cst.List)
        found = "parts" if parent.value is node and apart else ""
    elif isinstance(parent, cst.BinaryOperation | cst.UnaryOperation) and not isinstance(parent.operator, cst.Not):
        found = "tensor"
    elif isinstance(parent, cst.Arg) and parent.value is node:
        call = next(source.parents(parent))
        if parent.star:
            return "parts", call
        return (_of_argument(source, call, parent, far), call) if isinstance(call, cst.Call) else ("", node)
    return found, node


def _of_attribute(source: Source, node: cst.Attribute) -> Sign:
    import libcst as cst

    name = node.attr.value
    parent = next(source.parents(node))
    is_called = isinstance(parent, cst.Call) and parent.func is node
    if name not in PROPERTIES and not (is_called and name.rstrip("_") in METHODS):
        return "parts"
    return "" if name in _OF_OTHERS_TOO else "tensor"


def _names_a_part(node: cst.Subscript) -> bool:
    """``out["loss"]``, ``out[0]``: one index, which is a text or a number."""
    import libcst as cst

    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return False
    return isinstance(node.slice[0].slice.value, cst.SimpleString | cst.Integer)


def _of_argument(source: Source, call: cst.Call, arg: cst.Arg, far: int) -> Sign:
    """What the function does with it: torch's take tensors, the file's own are read, others are unknown."""
    import libcst as cst

    name = dotted(call.func) or ""
    if name in _TAKES_APART:
        return "parts"
    if isinstance(call.func, cst.Attribute) and root_name(name) not in imported(source):
        method = call.func.attr.value  # a tensor's own: labels.eq(out)
        if method in METHODS and method not in _OF_OTHERS_TOO:
            return "tensor"
    if is_of_torch(source, call):
        return "tensor"
    if hasattr(builtins, name):
        return ""
    position = next((k for k, a in enumerate(call.args) if a is arg), 0)
    keyword = arg.keyword.value if arg.keyword is not None else ""
    for function in functions_of(source, name, call):
        params = [p.name.value for p in function.params.params]
        params = params[1:] if params[:1] == ["self"] else params
        param = keyword or (params[position] if position < len(params) else "")
        if far == 0 or param not in params:
            return "unknown"
        inside = _signs_of_name(source, function.body, param, far - 1)
        # rows of a tensor are gone over, too: of a function's own rounds only a part with a name says that it is none
        return _worst([s if s != "parts" or _has_name(source, node) else "unknown" for s, node in inside])
    values = values_of(source, name, call, FAR)
    if values is None:
        return ""  # a name of which the file says nothing at all
    return "tensor" if values and all(gives_torch(source, v) for v in values) else "unknown"


def _has_name(source: Source, node: Any) -> bool:
    import libcst as cst

    parent = next(source.parents(node))
    text = isinstance(parent, cst.Subscript) and isinstance(
        getattr(parent.slice[0].slice, "value", None), cst.SimpleString
    )
    return text or isinstance(parent, cst.Attribute)


def _worst(signs: Sequence[Sign]) -> Sign:
    order: tuple[Sign, ...] = ("parts", "tensor", "unknown")
    return next((sign for sign in order if sign in signs), "")


def _class_sign(source: Source, call: cst.Call) -> Sign:
    """What the model's class says, where the file shows it: what its ``forward`` returns."""
    import libcst as cst

    name = dotted(call.func) or ""
    try:
        made = {n for n, _ in making(source, source.place(call)[0])}
    except Unwritable:
        made = set()
    signs: list[Sign] = []
    for statement in source.of_type(cst.SimpleStatementLine):
        named = assigned(statement)
        if named is None or named[0] not in {name, *made} or not isinstance(named[1], cst.Call):
            continue
        inner = innermost(named[1])
        forward = forward_of(source, dotted(inner.func) or "")
        if forward is not None:
            signs.append(_returned(source, forward))
        elif is_of_torch(source, inner) and (dotted(inner.func) or "").rpartition(".")[2][:1].isupper():
            signs.append("tensor" if (dotted(inner.func) or "").rpartition(".")[2] not in _NOT_ONE else "")
    return _worst(signs)


def _returned(source: Source, forward: cst.FunctionDef) -> Sign:
    import libcst as cst

    several = cst.Tuple | cst.List | cst.Dict | cst.DictComp
    for out in source.inside(forward, cst.Return):
        if source.function(out) is not forward:
            continue
        values = [
            out.value,
            *(values_of(source, out.value.value, out, 0) or [] if isinstance(out.value, cst.Name) else []),
        ]
        own = [v for v in values if v is out.value or any(p is forward for p in source.parents(v))]
        if any(isinstance(v, several) or (isinstance(v, cst.Call) and dotted(v.func) == "dict") for v in own):
            return "parts"
    return "tensor"
