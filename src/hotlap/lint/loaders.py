"""The DataLoaders of a script, and which of them feed training."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from hotlap.lint.loops import Training
from hotlap.lint.script import Loop, Script, dotted, keyword, names_in

__all__ = ["Loader", "default_of", "given", "training_loaders", "works_per_sample"]

_POSITIONS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory")
_IN_MEMORY = ("TensorDataset",)


@dataclass(frozen=True)
class Loader:
    """A ``DataLoader(…)`` call whose batches a step loop takes."""

    call: ast.Call
    name: str
    step_loop: Loop
    epoch_loop: Loop | None
    """The loop in which it is gone through again and again."""

    def option(self, name: str) -> ast.expr | None:
        """An argument by keyword or by position."""
        at = _POSITIONS.index(name) if name in _POSITIONS else len(self.call.args)
        return self.call.args[at] if at < len(self.call.args) else keyword(self.call, name)


def training_loaders(script: Script, training: Training) -> Iterator[Loader]:
    """torch's own loaders with plain arguments, assigned to a name that a step loop goes over."""
    for call in script.all(ast.Call):
        if not script.full(call.func).startswith("torch.") or not dotted(call.func).endswith("DataLoader"):
            continue
        parent = script.parent[call]
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not dotted(parent.targets[0]):
            continue
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            continue
        if _in_memory(script, call):
            continue
        name = dotted(parent.targets[0])
        loop = _loop_over(script, training, name, call)
        if loop is not None:
            yield Loader(call, name, loop, training.epochs.get(id(loop)))


def _loop_over(script: Script, training: Training, name: str, call: ast.Call) -> Loop | None:
    """The step loop over ``name`` in the same function, or in a function that is given it as an argument."""
    scope = script.scope(call)
    for loop in training.steps:
        if not isinstance(loop, ast.For):
            continue
        own = name.startswith("self.") or script.scope(loop) is scope
        if own and name in names_in(loop.iter):
            return loop
        function = script.function(loop)
        if function is None:
            continue
        params = [a.arg for a in function.args.args]
        for use in script.all(ast.Call):
            if function not in script.called(use) or script.scope(use) is not scope:
                continue
            shift = 1 if params[:1] == ["self"] else 0
            passed = {params[i + shift]: a for i, a in enumerate(use.args) if i + shift < len(params)}
            passed |= {k.arg: k.value for k in use.keywords if k.arg}
            if any(dotted(value) == name and param in names_in(loop.iter) for param, value in passed.items()):
                return loop
    return None


def works_per_sample(script: Script, call: ast.Call) -> bool:
    """Whether the data set is seen to do work for a sample: torchvision's, or a class here whose __getitem__ calls."""
    made = _dataset(script, call)
    if made is None:
        return False
    if script.full(made.func).startswith("torchvision.datasets."):
        return True
    for cls in script.all(ast.ClassDef):
        if cls.name == dotted(made.func):
            items = [m for m in cls.body if isinstance(m, ast.FunctionDef) and m.name == "__getitem__"]
            return any(not dotted(c.func).startswith("torch.") for m in items for c in script.calls(m))
    return False


def _in_memory(script: Script, call: ast.Call) -> bool:
    """Whether the data set is tensors already: then workers only cost."""
    made = _dataset(script, call)
    return made is not None and dotted(made.func).rpartition(".")[2] in _IN_MEMORY


def _dataset(script: Script, call: ast.Call) -> ast.Call | None:
    """The call that makes the loader's data set, behind names and splits."""
    dataset = call.args[0] if call.args else keyword(call, "dataset")
    for _ in range(6):
        if isinstance(dataset, ast.Call):
            split = dotted(dataset.func).rpartition(".")[2] in ("random_split", "Subset")
            if not split or not dataset.args:
                return dataset
            dataset = dataset.args[0]
            continue
        name = dotted(dataset) if dataset is not None else ""
        values = [v for where in (script.scope(call), script.tree) for v in given(script, where, name)] if name else []
        dataset = values[0] if values else None
    return None


def given(script: Script, scope: ast.AST, name: str) -> list[ast.expr]:
    """Values given to a name, alone or among others, the last first."""
    found = [n for n in script.within(scope) if isinstance(n, ast.Assign) and name in map(dotted, _flat(n.targets))]
    return [n.value for n in sorted(found, key=lambda n: -n.lineno)]


def _flat(targets: list[ast.expr]) -> list[ast.expr]:
    return [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]


def default_of(script: Script, value: ast.expr | None) -> int | None:
    """The number behind an argument: a literal, a constant of the file, or an argparse default; else None."""
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        return int(value.value)
    if isinstance(value, ast.Name):
        values = script.assigned(script.tree, value.id)
        return default_of(script, values[0]) if len(values) == 1 and not isinstance(values[0], ast.Name) else None
    if isinstance(value, ast.Attribute):
        for call in script.all(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
                flags = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                names = {f.lstrip("-").replace("-", "_") for f in flags}
                default = keyword(call, "default")
                if value.attr in names and isinstance(default, ast.Constant) and isinstance(default.value, int):
                    return int(default.value)
    return None
