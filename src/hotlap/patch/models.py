"""Which calls are a model's forward, as far as one file shows it."""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING

from hotlap.patch.source import Source, Unwritable, dotted, root_name

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["calls_like_models", "imported", "may_be_model", "model_calls", "model_names"]

_MODEL_METHODS = {"parameters", "named_parameters", "train", "eval", "requires_grad_", "named_modules"}
"""Methods that are called on models and on little else."""
_NOT_A_MODEL = re.compile(r"crit|loss|tqdm", re.IGNORECASE)


def model_names(source: Source) -> set[str]:
    """Names on which the file calls what only models have."""
    import libcst as cst

    found = set()
    for call in source.of_type(cst.Call):
        name = dotted(call.func) or ""
        owner, _, method = name.rpartition(".")
        if owner and method in _MODEL_METHODS:
            found.add(owner)
    return found - {"trainer", "self.trainer", "self"}


def model_calls(source: Source, line: int) -> list[cst.Call]:
    """The forwards on ``line``, outermost first. Unwritable where none is seen, or which one it is cannot be."""
    calls = source.calls(source.statement(line))
    known = model_names(source)
    found = [c for c in calls if dotted(c.func) in known]
    if found:
        return found
    likely = [c for c in calls if may_be_model(source, dotted(c.func))]
    if not likely:
        raise Unwritable("no call of a model is seen there")
    if len({dotted(c.func) for c in likely}) > 1:
        raise Unwritable(
            f"which of {' and '.join(sorted({dotted(c.func) or '' for c in likely}))} is the model is not seen"
        )
    return likely[-1:]


def calls_like_models(source: Source, line: int) -> list[cst.Call]:
    """The calls on ``line`` that are, or may be, a model's."""
    known, calls = model_names(source), source.calls(source.statement(line))
    return [c for c in calls if dotted(c.func) in known or may_be_model(source, dotted(c.func))]


def may_be_model(source: Source, name: str | None) -> bool:
    """Whether what is called ``name`` may be a model: a plain name, or ``self.`` and one, that is nothing else."""
    import libcst as cst

    if name is None or _NOT_A_MODEL.search(name) or name.count(".") > (root_name(name) == "self"):
        return False
    other = {n.name.value for n in source.of_type(cst.FunctionDef, cst.ClassDef)} | imported(source)
    return not {root_name(name), name.rpartition(".")[2]} & other and not hasattr(builtins, name)


def imported(source: Source) -> set[str]:
    """Names that imports bind."""
    import libcst as cst

    found = set()
    for alias in source.of_type(cst.ImportAlias):
        name = alias.asname.name if alias.asname is not None else alias.name
        found.add(root_name(dotted(name) or ""))
    return found
