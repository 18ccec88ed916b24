"""What a file gives to a name, and which of its functions a call of that name means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotlap.patch.making import assigned, innermost
from hotlap.patch.models import imported
from hotlap.patch.readers import full_name, full_names
from hotlap.patch.source import Source, dotted, root_name

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["FAR", "forward_of", "functions_of", "gives_torch", "is_of_torch", "values_of"]

FAR = 3
"""Functions through which a value is followed."""
_TORCH = {"torch", "nn", "F", "functional"}


def functions_of(source: Source, name: str, call: cst.Call) -> list[cst.FunctionDef]:
    """The file's own function of that name; or ``forward`` of the class that an object of that name is of."""
    import libcst as cst

    last = name.rpartition(".")[2]
    if name in (last, f"self.{last}"):
        found = [f for f in source.of_type(cst.FunctionDef) if f.name.value == last]
        if found:
            return found[:1]
    for value in values_of(source, name, call, FAR) or []:
        if (
            isinstance(value, cst.Call)
            and (forward := forward_of(source, dotted(innermost(value).func) or "")) is not None
        ):
            return [forward]
    return []


def forward_of(source: Source, cls: str) -> cst.FunctionDef | None:
    import libcst as cst

    for node in source.of_type(cst.ClassDef):
        if node.name.value == cls:
            methods = [f for f in source.inside(node, cst.FunctionDef) if f.name.value in ("forward", "__call__")]
            return methods[0] if methods else None
    return None


def values_of(source: Source, name: str, user: cst.CSTNode, far: int) -> list[cst.BaseExpression] | None:
    """What the file gives to a name, also as a parameter; None where the file does not bind it at all."""
    import libcst as cst

    function = source.function(user)
    params = [p.name.value for p in function.params.params] if function is not None else []
    if function is not None and name in params:
        found: list[cst.BaseExpression] = []
        for call in source.of_type(cst.Call):
            if dotted(call.func) == function.name.value and far:
                at = params.index(name)
                for k, arg in enumerate(call.args):
                    if arg.keyword.value == name if arg.keyword is not None else k == at:
                        inner = dotted(arg.value)
                        found += (
                            [arg.value] if inner is None else values_of(source, inner, call, far - 1) or [arg.value]
                        )
        return found
    statements = source.of_type(cst.SimpleStatementLine)
    given = [made[1] for s in statements if (made := assigned(s)) is not None and made[0] == name]
    bound = {dotted(n) for t in source.of_type(cst.AssignTarget) for n in source.inside(t, cst.Name, cst.Attribute)}
    return given if given or name in bound or root_name(name) in imported(source) else None


def is_of_torch(source: Source, call: cst.Call) -> bool:
    full = full_name(call, full_names(source))
    return full.startswith("torch.") or root_name(full) in _TORCH


def gives_torch(source: Source, value: cst.BaseExpression) -> bool:
    """``nn.CrossEntropyLoss().to(device)``, ``F.mse_loss``, one of two such."""
    import libcst as cst

    if isinstance(value, cst.IfExp):
        return gives_torch(source, value.body) and gives_torch(source, value.orelse)
    if isinstance(value, cst.Call):
        return is_of_torch(source, innermost(value))
    return dotted(value) is not None and root_name(dotted(value) or "") in _TORCH
