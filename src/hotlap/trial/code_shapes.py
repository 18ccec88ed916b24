"""Shapes of source that cost time, found by syntax alone: attention written out, tensors that grow in a loop or with
each call, loops over samples, tensors made on the host; batches filled up to one length, double precision; and options
by which a framework was told what costs time.

A shape is no finding: a cause wants samples of the script's stacks on its lines as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hotlap.records.code_shape import CodeShape
from hotlap.trial.attention_shape import written_out
from hotlap.trial.growing_shape import growing_arguments, growing_by_calls, growing_in_loop
from hotlap.trial.loop_headers import Comprehension
from hotlap.trial.padding_shape import filled_up
from hotlap.trial.sample_loops import batch_sizes, over_samples

__all__ = ["find_shapes"]

_MAKERS = {
    "tensor", "as_tensor", "from_numpy", "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange", "eye",
    "linspace",
}  # fmt: skip
_OPTIONS = {
    "val_check_interval": "validation-cadence", "check_val_every_n_epoch": "validation-cadence",
    "eval_steps": "validation-cadence", "save_steps": "checkpoint-blocking",
    "every_n_train_steps": "checkpoint-blocking", "detect_anomaly": "autograd-debug",
    "logging_steps": "logging-blocking", "log_every_n_steps": "logging-blocking",
    "flush_logs_every_n_steps": "logging-blocking", "gradient_checkpointing": "activation-checkpointing",
    "profiler": "profiler-left-on", "bf16": "emulated-dtype", "fp16": "emulated-dtype",
    "mixed_precision": "emulated-dtype", "precision": "emulated-dtype",
}  # fmt: skip
"""Arguments of Lightning's Trainer, ModelCheckpoint and CSVLogger, of transformers' TrainingArguments and of
Accelerate's Accelerator, and their causes."""
_SWITCHES = {
    "thread-contention": re.compile(r"^os\.(?:environ\[|environ\.setdefault\(|putenv\()'(?:OMP|MKL)_NUM_THREADS'"),
    "hook": re.compile(r"\.register_(?:\w+_)?hook\("),
    "gc": re.compile(r"^gc\.set_threshold\("),
    "activation-checkpointing": re.compile(r"^[\w.]+\.gradient_checkpointing_enable\("),
    "profiler-left-on": re.compile(r"^(?:sys|threading)\.set(?:trace|profile)\((?!None\))"),
}
"""Statements that switch on what costs time, and that leave no frame of their own behind when it does."""
_TEXT = 200
Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_shapes(tree: ast.Module, lines: list[str]) -> list[CodeShape]:
    """All shapes of one file; ``file`` is left empty."""
    found: list[CodeShape] = []

    def add(kind: str, node: ast.stmt | ast.expr | ast.keyword, function: str, spared: set[int], detail: str) -> None:
        text = lines[node.lineno - 1].strip()[:_TEXT] if node.lineno <= len(lines) else ""
        found.append(CodeShape(kind, "", node.lineno, function, frozenset(spared), text, detail))

    for grown, name, target in growing_arguments(tree):
        add("repeated-cat", grown, name, _span(grown), target)
    by_calls = growing_by_calls(tree)
    for name, body in _scopes(tree):
        for use, used, detail in written_out(body):
            add("attention-by-hand", use, name, used, detail)
        for grown, target in by_calls(list(_own(body))):
            add("repeated-cat", grown, name, _span(grown), target)
        for told in (n for n in _own(body) if isinstance(n, ast.keyword) and n.arg in _OPTIONS):
            if _is_on(told):
                add(_OPTIONS[str(told.arg)], told, name, {told.lineno}, str(told.arg))
        for node in (n for n in _own(body) if isinstance(n, ast.Assign | ast.Expr | ast.Return)):
            if _doubles(node):
                add("precision", node, name, _span(node), "float64")
            for cause, switch in _SWITCHES.items() if not isinstance(node, ast.Return) else ():
                if switch.search(ast.unparse(node)[:_TEXT]):
                    add(cause, node, name, _span(node), cause)
        for filled, what in filled_up(_own(body)) if name != "forward" else ():
            add("padding", filled, name, {filled.lineno}, what)
        batch = batch_sizes(_own(body))
        for each in (n for n in _own(body) if isinstance(n, ast.For | Comprehension)):
            bound = over_samples(each, batch)
            if bound:
                work = each.body if isinstance(each, ast.For) else [each]
                add("samples-loop", each, name, {line for part in work for line in _span(part)}, bound)
        for loop in (n for n in _own(body) if isinstance(n, ast.For | ast.AsyncFor | ast.While)):
            for grown, target in growing_in_loop(loop):
                add("repeated-cat", grown, name, _span(grown), target)
            for made in _host_made(loop):
                add("host-tensors", made, name, _span(made), ast.unparse(made)[:60])
        if name == "forward":
            for made in (m for s in body for m in _host_made(s)):
                add("host-tensors", made, name, _span(made), ast.unparse(made)[:60])
    return list({(s.kind, s.line): s for s in found}.values())


def _is_on(told: ast.keyword) -> bool:
    """Whether the option is switched on; one on precision, whether it says 16 bits."""
    value = told.value
    off = isinstance(value, ast.Constant) and not value.value  # False, None, 0
    return not off and (told.arg not in ("mixed_precision", "precision") or "16" in ast.unparse(value))


def _scopes(tree: ast.Module) -> Iterator[tuple[str, list[ast.stmt]]]:
    yield "<module>", tree.body
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node.name, node.body


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Nodes of a body without those of functions and classes in it."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


def _span(node: ast.stmt | ast.expr) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _called(call: ast.expr) -> tuple[str, str]:
    """(module, function) of ``torch.cat(...)``; empty where it is no such call."""
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        return call.func.value.id, call.func.attr
    return "", ""


def _doubles(statement: ast.AST) -> bool:
    """``net.double()``, ``torch.set_default_dtype(torch.float64)``, ``net.to(torch.float64)``."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            told = [ast.unparse(a) for a in [*node.args, *(k.value for k in node.keywords)]]
            wide = "torch.float64" in told or "torch.double" in told
            if (node.func.attr == "double" and not told) or (node.func.attr in ("to", "set_default_dtype") and wide):
                return True
    return False


def _host_made(inside: ast.AST) -> Iterator[ast.Call]:
    """``torch.zeros(...).to(device)``: made on the host, then copied."""
    for node in ast.walk(inside):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
            module, function = _called(node.func.value)
            made = node.func.value
            placed = isinstance(made, ast.Call) and any(k.arg == "device" for k in made.keywords)
            if module == "torch" and function in _MAKERS and not placed:
                yield node
