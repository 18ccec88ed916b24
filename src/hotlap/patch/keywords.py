"""Which calls a keyword is meant for, and which of their arguments has its value already."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from hotlap.patch.readers import full_name, full_names
from hotlap.patch.source import Source, Unwritable, dotted
from hotlap.records.changed_data import changed_data
from hotlap.records.edits import Edit

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["by_position", "meant_calls", "refuse_changed_data", "refuse_stale_workers"]

_DDP = ("module", "device_ids", "output_device", "dim", "broadcast_buffers", "init_sync", "process_group",
        "bucket_cap_mb", "find_unused_parameters", "check_reduction", "gradient_as_bucket_view",
        "static_graph")  # fmt: skip
_POSITIONS = {
    "DataLoader": ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn",
                   "pin_memory", "drop_last", "timeout", "worker_init_fn", "multiprocessing_context", "generator"),
    "DistributedDataParallel": _DDP,
    "DDP": _DDP,
    "zero_grad": ("set_to_none",),
    "cuda": ("device", "non_blocking"),
    "autocast": ("device_type", "dtype", "enabled", "cache_enabled"),
    "amp.autocast": ("enabled", "dtype", "cache_enabled"),
}  # fmt: skip
"""Arguments that may be given by position, in torch's own order."""


def by_position(source: Source, call: cst.Call, name: str) -> cst.BaseExpression | None:
    """The value of the argument ``name``, where it is given by its place."""
    values = [a.value for a in call.args if a.keyword is None]
    function = _last(call)
    if function == "to" and name == "non_blocking":
        return _of_to(source, values)
    if name == "enabled":
        older = re.search(r"\b(?:cuda|cpu)\.amp\.", full_name(call, full_names(source)))  # of one device each
        function = "amp.autocast" if older else "autocast"
    names = _POSITIONS.get(function, ())
    return values[names.index(name)] if name in names and names.index(name) < len(values) else None


def _of_to(source: Source, values: list[cst.BaseExpression]) -> cst.BaseExpression | None:
    """Right are ``.to(device, dtype, non_blocking)``, ``.to(dtype, non_blocking)`` and ``.to(other, non_blocking)``."""
    for value in values[1:]:
        text = source.code(value)
        if text in ("True", "False"):
            return value
        if not (text.endswith("dtype") or text.startswith("torch.")):
            raise Unwritable(f"whether {text} is its dtype or non_blocking is not seen")
    return None


def meant_calls(source: Source, calls: list[cst.Call], edit: Edit) -> list[cst.Call]:
    """Of the calls in a statement, those on the edit's own line. Unwritable where one would bring in another loader."""
    if len(calls) > 1:
        spans = [source.span(c) for c in calls]
        calls = [c for c, (first, last) in zip(calls, spans, strict=True) if first <= edit.line <= last]
    if edit.target != "DataLoader" or not calls:
        return calls
    if len(calls) > 1:
        raise Unwritable("several are made on that line, and one of them is meant")
    if _makes_several(source, calls[0]):
        raise Unwritable("this call makes several loaders, and one of them is meant")
    return calls


def refuse_stale_workers(source: Source, call: cst.Call, edit: Edit) -> None:
    """Unwritable where workers would stay, each with its first copy of a data set that the script changes later."""
    stays = edit.keywords.get("persistent_workers", False) is not False
    if not stays or any(a.keyword is not None and a.keyword.value == "persistent_workers" for a in call.args):
        return
    why = "workers that stay would not see what {0} (line {1}) changes of their data set: write the other keywords "
    refuse_changed_data(source, call, why + "without persistent_workers")


def refuse_changed_data(source: Source, call: cst.Call, why: str) -> None:
    """Unwritable where the script changes the data set later; ``why`` names ``{0}``, what does, and ``{1}``, where."""
    changed = changed_data(ast.parse(source.module.code), source.place(call)[0])
    if changed is not None:
        raise Unwritable(why.format(f"`{changed[0]}`", changed[1]))


def _makes_several(source: Source, call: cst.Call) -> bool:
    """In a comprehension; or handed out by a function that the file calls more than once."""
    import libcst as cst

    function = source.function(call)
    for parent in source.parents(call):
        if parent is function:
            break
        if isinstance(parent, cst.BaseComp):
            return True
    if function is None or not _hands_out(source, function, call):
        return False
    callers = [c for c in source.of_type(cst.Call) if _last(c) == function.name.value]
    return len(callers) > 1 or any(_is_repeated(source, c) for c in callers)


def _hands_out(source: Source, function: cst.FunctionDef, call: cst.Call) -> bool:
    """Whether the function returns what the call makes, itself or by the name that it gets."""
    import libcst as cst

    statement = source.statement_of(call)
    names = {dotted(t.target) for t in source.inside(statement, cst.AssignTarget)} if statement is not None else set()
    for out in source.inside(function, cst.Return, cst.Yield):
        named = {dotted(n) for n in source.inside(out, cst.Name, cst.Attribute)}
        if any(p is out for p in source.parents(call)) or names & named - {None}:
            return True
    return False


def _is_repeated(source: Source, caller: cst.Call) -> bool:
    """``{part: make(part) for part in parts}``, and the same in a ``for``."""
    import libcst as cst

    given = {n.value for a in caller.args for n in source.inside(a.value, cst.Name)}
    around: Any
    for around in source.parents(caller):
        if isinstance(around, cst.BaseComp):
            return True
        if isinstance(around, cst.For) and given & {n.value for n in source.inside(around.target, cst.Name)}:
            return True
    return False


def _last(call: cst.Call) -> str:
    return (dotted(call.func) or "").rpartition(".")[2]
