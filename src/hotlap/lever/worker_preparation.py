"""Whether what a script does at the start of each worker is about worker processes alone, read from its source.

Seeds, thread counts, signals and priorities of a process that is not there are not missed. Whatever else is done (a
file opened for the data set, an attribute set) may be wanted wherever samples are loaded: what is not known is a no.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from hotlap.lever.source_tree import source_tree

__all__ = ["concerns_workers_alone"]

_DEPTH = 3
"""Functions of the script that call one another."""
_CALLS = (
    "random.seed", "numpy.random.seed", "numpy.random.get_state", "numpy.random.SeedSequence",
    "torch.seed", "torch.initial_seed", "torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all",
    "torch.set_num_threads", "torch.get_num_threads", "torch.utils.data.get_worker_info",
    "cv2.setNumThreads", "cv2.ocl.setUseOpenCL", "signal.signal", "signal.pthread_sigmask", "signal.sigwaitinfo",
    "os.getpid", "os.getppid", "os.nice", "os.sched_setaffinity", "os._exit",
    *(f"builtins.{name}" for name in ("abs", "bool", "hasattr", "hash", "int", "len", "list", "max", "min", "range",
                                      "round", "set", "str", "sum", "tuple")),
)  # fmt: skip
_METHODS = frozenset(("generate_state", "item", "tolist", "spawn"))
"""Of seeds."""
_NODES = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.keyword, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.For,
    ast.While, ast.Return, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.BoolOp, ast.BinOp, ast.UnaryOp,
    ast.Compare, ast.Call, ast.IfExp, ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.List,
    ast.Tuple, ast.Set, ast.Starred, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.Import,
    ast.ImportFrom, ast.alias,
)  # fmt: skip
_LOCAL = object()


def concerns_workers_alone(function: Any) -> bool:
    """Whether ``worker_init_fn`` can be left out where no process is started."""
    while isinstance(function, functools.partial):
        function = function.func
    return _is_harmless(function, _DEPTH)


def _is_harmless(function: Any, depth: int) -> bool:
    if function is None:  # unknown, as is what is not loaded
        return False
    if any(function is one for name in _CALLS for one in _unwrapped(_by_name(name))):
        return True
    if depth == 0 or not isinstance(function, FunctionType):
        return False
    source = source_tree(function)
    tree = source.body[0] if source is not None and source.body else None
    if not isinstance(tree, ast.FunctionDef) or tree.decorator_list:
        return False
    try:
        names = _Names(function, tree)
    except ValueError:  # a name of the function around it that has no value yet
        return False
    return all(
        isinstance(node, _NODES)
        and all(isinstance(target, ast.Name) for target in _targets(node))  # of its own: `global` is no known node
        and (not isinstance(node, ast.Call) or _may_call(node, names, depth))
        for node in ast.walk(tree)
    )


def _unwrapped(function: Any) -> Iterator[Any]:
    """A function and what it stands before: the compiler, once it is loaded, wraps some of torch's."""
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None)


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """What is assigned to, one by one."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For):
        yield node.target


def _may_call(call: ast.Call, names: _Names, depth: int) -> bool:
    """A known function, a method of a seed, a function of the script that does no more; a thread of such."""
    what, method = names.found(call.func), call.func
    if what is _LOCAL:
        if not isinstance(method, ast.Attribute):
            return False
        return method.attr in _METHODS or (method.attr == "start" and isinstance(method.value, ast.Call))
    if what is not None and what is _by_name("threading.Thread"):
        targets = [names.found(word.value) for word in call.keywords if word.arg == "target"]
        return not call.args and all(_is_harmless(target, depth - 1) for target in targets)
    return _is_harmless(what, depth - 1)


class _Names:
    """What names in a function mean."""

    def __init__(self, function: FunctionType, tree: ast.FunctionDef) -> None:
        self._outer = inspect.getclosurevars(function)
        self._own: dict[str, Any] = dict.fromkeys(function.__code__.co_varnames, _LOCAL)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for a in node.names:
                    name = a.name if a.asname else a.name.partition(".")[0]
                    self._own[a.asname or name] = _by_name(name)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                self._own |= {a.asname or a.name: _by_name(f"{node.module}.{a.name}") for a in node.names}

    def found(self, node: ast.expr) -> Any:
        """The object; _LOCAL where it hangs on what the function has; None where it is not known."""
        if isinstance(node, ast.Attribute):
            owner = self.found(node.value)
            if owner is _LOCAL:
                return _LOCAL
            return vars(owner).get(node.attr) if isinstance(owner, ModuleType) else None  # no property is asked
        if not isinstance(node, ast.Name):
            return _LOCAL  # of a call, which is looked at by itself
        places = (self._own, self._outer.nonlocals, self._outer.globals, vars(builtins))
        return next((place[node.id] for place in places if node.id in place), None)


def _by_name(full: str) -> Any:
    """What a full name means, in modules as far as they are loaded."""
    root, *rest = full.split(".")
    found: Any = sys.modules.get(root)
    for part in rest:
        found = getattr(found, part, None)
    return found
