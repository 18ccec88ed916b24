"""DataLoaders: in the training process, respawned or rebuilt at each epoch, into pageable memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.lint.devices import made_on_device
from hotlap.lint.loaders import Loader, default_of, training_loaders, works_per_sample
from hotlap.lint.loops import Training
from hotlap.lint.place import problem
from hotlap.lint.problem import Problem
from hotlap.lint.script import Script, keyword, names_in
from hotlap.records.changed_data import changed_data
from hotlap.records.edits import Edit

CAUSES = ("too-few-workers", "workers-respawned", "loader-rebuilt", "h2d-copy")


def find(script: Script, training: Training) -> Iterator[Problem]:
    """At most one problem of each cause per loader."""
    cuda = _moves_to_cuda(script)
    for loader in training_loaders(script, training):
        workers = loader.option("num_workers")
        count = 0 if workers is None else default_of(script, workers)
        unset = workers is None or isinstance(workers, ast.Constant)
        if count == 0 and unset and works_per_sample(script, loader.call):
            yield problem(
                script, loader.call, "too-few-workers",
                f"`{loader.name}` loads in the training process: each step waits for its batch.",
                "Give it num_workers; `hotlap speedup` measures how many pay on your machine.",
            )  # fmt: skip
        if _rebuilt(script, loader):
            yield problem(
                script, loader.call, "loader-rebuilt",
                f"`{loader.name}` is made anew in each epoch, workers and all.",
                "Make it once, before the epochs.",
            )  # fmt: skip
        elif (
            count and loader.epoch_loop is not None and loader.option("persistent_workers") is None
            and changed_data(script.tree, loader.call.lineno) is None  # fresh workers see what the script changes
        ):  # fmt: skip
            yield problem(
                script, loader.call, "workers-respawned",
                f"`{loader.name}` starts its {count} workers anew in each epoch.",
                "Pass persistent_workers=True.", [_keywords(script, loader.call, workers, "persistent_workers")],
            )  # fmt: skip
        if cuda and loader.option("pin_memory") is None and not made_on_device(script, loader):
            yield problem(
                script, loader.call, "h2d-copy",
                f"`{loader.name}` hands out pageable memory, and the batches go to CUDA.",
                "Pass pin_memory=True, and non_blocking=True to .to() or .cuda().",
                [_keywords(script, loader.call, None, "pin_memory")],
            )  # fmt: skip


def _keywords(script: Script, call: ast.Call, workers: ast.expr | None, name: str) -> Edit:
    """True, or where the number of workers is an expression, whether there are any (torch refuses it without)."""
    value: object = True
    if workers is not None and not isinstance(workers, ast.Constant):
        value = f"{ast.unparse(workers)} > 0"
    return Edit("set_keyword", script.name, call.lineno, target="DataLoader", keywords={name: value})


def _rebuilt(script: Script, loader: Loader) -> bool:
    """Inside the epoch loop, from nothing that this loop makes."""
    epoch = loader.epoch_loop
    if epoch is None or not any(p is epoch for p in script.parents(loader.call)):
        return False
    if any(p is loader.step_loop for p in script.parents(loader.call)):
        return False
    made = {n.id for n in script.within(epoch) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return not made & names_in(loader.call)


def _moves_to_cuda(script: Script) -> bool:
    """``.cuda()`` in the script, or a device that is made from the text ``cuda``."""
    for call in script.all(ast.Call):
        name = script.full(call.func)
        if name == "torch.device" and call.args and "cuda" in ast.unparse(call.args[0]):
            return True
        if name.endswith(".cuda") and not name.startswith("torch.") and keyword(call, "fake") is None:
            return True
    return False
