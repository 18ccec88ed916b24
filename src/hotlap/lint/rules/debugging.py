"""Debugging left on: anomaly detection, autograd's profiler, cuDNN's search switched off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hotlap.lint.loops import Training
from hotlap.lint.place import problem
from hotlap.lint.problem import Problem
from hotlap.lint.script import Function, Script, dotted, keyword
from hotlap.records.edits import Edit

CAUSES = ("autograd-debug", "cudnn-benchmark")

_ANOMALY = ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly")
_WITHIN = ("torch.autograd.detect_anomaly", "torch.autograd.profiler.profile", "torch.autograd.profiler.emit_nvtx")


def find(script: Script, training: Training) -> Iterator[Problem]:
    """Switches that no condition guards."""
    for call in script.all(ast.Call):
        name = script.full(call.func)
        if _guarded(script, call):
            continue
        if name in _ANOMALY and call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is True:
            yield _left_on(script, call, "set_detect_anomaly", "Anomaly detection")
        elif name in _WITHIN and isinstance(script.parent[call], ast.withitem) and _trains(script, training, call):
            enabled = keyword(call, "enabled")
            if enabled is None or (isinstance(enabled, ast.Constant) and enabled.value is True):
                what = "Anomaly detection" if name.endswith("anomaly") else "The profiler"
                yield _left_on(script, call, name.rpartition(".")[2], what)
    yield from _benchmark(script)


def _left_on(script: Script, call: ast.Call, target: str, what: str) -> Problem:
    edit = Edit("remove", script.name, call.lineno, target=target)
    message = f"{what} is on for the whole training: every operation pays for it."
    return problem(script, call, "autograd-debug", message, "Remove it, or put it behind a --debug option.", [edit])


def _guarded(script: Script, node: ast.AST) -> bool:
    for parent in script.parents(node):
        if isinstance(parent, ast.If):
            return "__main__" not in ast.unparse(parent.test) or _guarded(script, parent)
        if isinstance(parent, Function) and "debug" in parent.name:
            return True
    return False


def _trains(script: Script, training: Training, call: ast.Call) -> bool:
    block = script.parent[script.parent[call]]
    return training.step_loop(call) is not None or any(loop in training.steps for loop in script.within(block))


def _benchmark(script: Script) -> Iterator[Problem]:
    """``benchmark = False`` where nothing asks for equal runs."""
    flags: dict[str, list[tuple[ast.Assign, object]]] = {}
    for node in script.all(ast.Assign):
        name = script.full(node.targets[0]) if dotted(node.targets[0]) else ""
        if name.startswith("torch.backends.cudnn.") and isinstance(node.value, ast.Constant):
            flags.setdefault(name.rpartition(".")[2], []).append((node, node.value.value))
    on = [n for n, value in flags.get("benchmark", []) if value is True]
    off = [n for n, value in flags.get("benchmark", []) if value is False]
    if on or "deterministic" in flags or any("deterministic" in script.full(c.func) for c in script.all(ast.Call)):
        return
    for node in off:
        if not _guarded(script, node):
            yield problem(
                script, node, "cudnn-benchmark", "cuDNN takes the first algorithm that its heuristics name.",
                "Set benchmark = True where input sizes stay the same.",
            )  # fmt: skip
