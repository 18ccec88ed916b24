"""Whether a piece of source trains: it, or a function of the file that it calls, goes backward or steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hotlap.patch.models import model_names
from hotlap.patch.source import Source, dotted

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["trains"]

_TRAINING = re.compile(r"(^|\.|_)(backward|fit|train\w*|step|autograd\.grad)$")


def trains(source: Source, node: cst.CSTNode) -> bool:
    """A name that sounds like training counts too, unless it only sets a model's mode (``model.train()``)."""
    import libcst as cst

    functions = {f.name.value: f for f in source.of_type(cst.FunctionDef)}
    models, todo, seen = model_names(source), [node], set()
    while todo:
        here = todo.pop()
        for call in source.inside(here, cst.Call):
            name = dotted(call.func) or (call.func.attr.value if isinstance(call.func, cst.Attribute) else "")
            owner, _, last = name.rpartition(".")
            if _TRAINING.search(name) and not (last == "train" and owner in models):
                return True
            if last in functions and last not in seen:
                seen.add(last)
                todo.append(functions[last])
    return False
