"""A DistributedSampler that is never told the epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.lint.loops import Training
from hotlap.lint.place import problem
from hotlap.lint.problem import Problem
from hotlap.lint.script import Script, keyword

CAUSES = ("sampler-set-epoch",)


def find(script: Script, training: Training) -> Iterator[Problem]:
    """Silent where no epoch loop is in the file, or where anything is told an epoch."""
    if not training.epochs or any(n.attr == "set_epoch" for n in script.all(ast.Attribute)):
        return
    for call in script.all(ast.Call):
        if not script.full(call.func).startswith("torch.utils.data") or not script.full(call.func).endswith(
            "DistributedSampler"
        ):
            continue
        shuffle = keyword(call, "shuffle")
        if shuffle is not None and not (isinstance(shuffle, ast.Constant) and shuffle.value is True):
            continue
        target = script.parent[call]
        while isinstance(target, ast.IfExp):
            target = script.parent[target]
        name = ast.unparse(target.targets[0]) if isinstance(target, ast.Assign) else ""
        if any(word in name.lower() for word in ("val", "test", "eval", "dev")):
            continue
        yield problem(
            script, call, "sampler-set-epoch", "Without set_epoch every epoch draws the samples in the same order.",
            f"Call {name or 'sampler'}.set_epoch(epoch) at the start of each epoch.",
        )  # fmt: skip
