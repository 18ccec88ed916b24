"""Whether a piece of source trains: it, or a function of the file that it calls, goes backward or steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hotlap.patch.models import model_names
from hotlap.patch.source import Source, dotted

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["FUSED", "OPTIMIZERS", "trains"]

OPTIMIZERS = {
    "Adam", "AdamW", "SGD", "Adagrad", "NAdam", "RAdam", "RMSprop", "Rprop", "Adamax", "ASGD", "Adadelta"
}  # fmt: skip
FUSED = {"Adam", "AdamW", "SGD", "Adagrad"}
"""Those of torch's that take ``fused``."""
_TRAINING = re.compile(r"(^|\.|_)(backward|fit|train\w*|step|autograd\.grad)$")
_OPTIMIZER = re.compile(r"(^|\.|_)optim\w*$|(^|\.|_)opt$")
_ONLY_LOOKS = re.compile(r"save|load|prepare|checkpoint|print|log|len|getattr|str")
"""Functions that are given an optimizer and do not step."""


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
            elif last not in functions and _is_lent_an_optimizer(call, last):
                return True
    return False


def _is_lent_an_optimizer(call: cst.Call, name: str) -> bool:
    """Whether a function of another file is given an optimizer to step: ``update(model, optimizer, batch)``."""
    if name[:1].isupper() or _ONLY_LOOKS.search(name):
        return False
    return any(_OPTIMIZER.search(dotted(arg.value) or "") for arg in call.args)
