"""One function per kind of edit: from the edit to changes of nodes. What cannot be written raises Unwritable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from hotlap.patch.beside import refuse_beside
from hotlap.patch.changes import Changes
from hotlap.patch.datasets import wrap_dataset
from hotlap.patch.flipping import flip_batches
from hotlap.patch.forwards import forward_calls, hoist, stands_alone
from hotlap.patch.iterables import replace_iterable
from hotlap.patch.keywords import by_position, meant_calls, refuse_stale_workers
from hotlap.patch.making import assigned, class_shows, making
from hotlap.patch.no_graph import check_frozen, check_function, check_validation, lends_a_model
from hotlap.patch.outputs import refuse_no_tensor
from hotlap.patch.readers import full_name, full_names, reader_calls
from hotlap.patch.saves import save_calls
from hotlap.patch.source import Source, Unwritable, dotted
from hotlap.patch.training import FUSED, OPTIMIZERS, trains
from hotlap.records.edits import Edit

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["KINDS"]


def set_keyword(source: Source, changes: Changes, edit: Edit) -> None:
    """Keywords of a call."""
    if edit.target == "optimizer":
        calls = _optimizers(source, edit)
    elif edit.target == "autocast":
        calls = _regions(source, edit)
    else:
        calls = [c for c in source.calls(source.statement(edit.line)) if _ends(c, edit.target)]
        calls = meant_calls(source, calls, edit)
    if not calls:
        raise Unwritable(f"no call of {edit.target} is seen there")
    for call in calls:
        if any(arg.star for arg in call.args):
            raise Unwritable("the call takes its arguments from * or **: set them where those are made")
        refuse_stale_workers(source, call, edit)
        for name, value in edit.keywords.items():
            changes.set_argument(call, name, value, by_position(source, call, name))


def _regions(source: Source, edit: Edit) -> list[cst.Call]:
    """The calls of autocast on the line, else those that made what the ``with`` there enters."""
    known = full_names(source)

    def regions(statement: cst.CSTNode) -> list[cst.Call]:
        return [c for c in source.calls(statement) if full_name(c, known).rpartition(".")[2] == edit.target]

    there = regions(source.statement(edit.line))
    return there or [c for _, made in making(source, edit.line, "region") for c in regions(made)]


def _optimizers(source: Source, edit: Edit) -> list[cst.Call]:
    """The calls that make the optimizer, as far as torch's of that kind takes the keyword: those on the line, else, for
    one that is stepped there, those of each branch that makes it."""
    import libcst as cst

    known = full_names(source)
    own_classes = {c.name.value for c in source.of_type(cst.ClassDef)}
    takes = FUSED if "fused" in edit.keywords else OPTIMIZERS
    found: list[cst.Call] = []
    others: list[str] = []
    for call in _making_calls(source, edit.line, known):
        full = full_name(call, known)
        other = full.rpartition(".")[0] and full != dotted(call.func)  # imported
        of_torch = full.startswith("torch.") or not (other or full in own_classes)
        if full.rpartition(".")[2] in takes and of_torch:
            found.append(call)
        else:
            others.append(full)
    if others and not found:
        raise Unwritable(f"{others[0]} is not known to take {', '.join(edit.keywords)}")
    return found


def _making_calls(source: Source, line: int, known: dict[str, str]) -> list[cst.Call]:
    """Calls of what is called like an optimizer, on that line or where the one that is stepped there gets its name."""
    import libcst as cst

    def optimizers(calls: Iterable[cst.Call]) -> list[cst.Call]:
        return [call for call in calls if full_name(call, known).rpartition(".")[2] in OPTIMIZERS]

    if there := optimizers(source.calls(source.statement(line))):
        return there
    return [
        call
        for name, statement in making(source, line, "optimizer")
        for call in optimizers(source.inside(statement, cst.Call))
        if (own := source.statement_of(call)) is not None and (assigned(own) or [""])[0] == name
    ]


def _ends(call: cst.Call, name: str) -> bool:
    """Whether the call's name ends in ``name`` (or in one of several, ``a|b``)."""
    called = dotted(call.func) or ""
    return any(called == n or called.endswith(f".{n}") for n in name.split("|"))


def wrap_with(source: Source, changes: Changes, edit: Edit) -> None:
    """A ``with`` around the model's calls, and around no more where that can be had."""
    no_graph = "no_grad" in edit.code
    for call in forward_calls(source, edit):
        if no_graph:
            (check_validation if edit.target == "validation" else check_frozen)(source, call)
        statement = source.statement_of(call)
        if statement is None:
            raise Unwritable("the model is called in the head of a compound statement, or beside one on its line")
        header = edit.code.replace("{module}", dotted(call.func) or "")
        held = changes.headers[statement]
        if any(source.code(p).lstrip().startswith(header) for p in source.parents(statement)) or header in held:
            continue
        if not any(h.partition("(")[0] == header.partition("(")[0] for h in held):
            held.append(header)
        hoist(source, changes, statement, call)
        if no_graph and not stands_alone(source, changes, statement, call):
            raise Unwritable("the line computes more than the network's call, which may have to be trained")


def replace_call(source: Source, changes: Changes, edit: Edit) -> None:
    """Another expression in place of a call."""
    calls: list[cst.Call]
    if edit.target in ("forward", "forwards"):
        calls = forward_calls(source, edit)
        refuse_no_tensor(source, calls)
    elif edit.target == "readers":
        calls = reader_calls(source)
    else:
        calls = [c for c in source.calls(source.statement(edit.line)) if _ends(c, edit.target)]
    if not calls:
        raise Unwritable(f"no call of {edit.target} is seen there")
    refuse_beside(source, edit.code)
    if edit.target == "torch.save":
        calls = save_calls(source)
    for call in calls:
        if not any(_written(source.code(p), edit.code) for p in source.parents(call)) and (
            edit.code not in changes.templates[call]
        ):
            changes.templates[call].append(edit.code)


def _written(around: str, template: str) -> bool:
    """Whether the text around the call is the template already."""
    head = template.partition("{")[0]
    return bool(head) and around.startswith(head)


def insert_before(source: Source, changes: Changes, edit: Edit) -> None:
    """Once, before the outermost loop of the function."""
    statement: Any = source.statement(edit.line)
    for loop in source.loops(statement):
        statement = loop
    _insert(source, statement, edit.code, changes.before)


def insert_after(source: Source, changes: Changes, edit: Edit) -> None:
    """After the statement, or after the models called there are made."""
    target, _, word = edit.target.partition(":")
    if target != "model":
        _insert(source, source.statement(edit.line), edit.code, changes.after)
        return
    for name, statement in making(source, edit.line):
        if not word or class_shows(source, statement, word):
            _insert(source, statement, edit.code.replace("{module}", name), changes.after)


def _insert(source: Source, statement: Any, code: str, place: dict[Any, list[str]]) -> None:
    import libcst as cst

    if not isinstance(statement, cst.SimpleStatementLine | cst.For | cst.While | cst.If):
        raise Unwritable("there is no plain statement to put it beside")
    block: Any = next(source.parents(statement))
    if not isinstance(block, cst.Module | cst.IndentedBlock):  # an `elif`
        raise Unwritable("the statement has no place of its own among others")
    beside = [source.code(s).strip() for s in block.body]
    if code not in beside and code not in place[statement]:
        place[statement].append(code)


def decorate(source: Source, changes: Changes, edit: Edit) -> None:
    """The function around the line; where it also trains, no_grad around the model's call alone."""
    function = source.function(source.statement(edit.line))
    if function is None or trains(source, function) or lends_a_model(source, function):
        plain = Edit("wrap_with", edit.file, edit.line, target="validation", code="with torch.no_grad():")
        wrap_with(source, changes, plain)
        return
    check_function(source, function)
    held = [f"@{source.code(d.decorator)}" for d in function.decorators] + changes.decorators[function]
    if edit.code not in held:
        changes.decorators[function].append(edit.code)


def remove(source: Source, changes: Changes, edit: Edit) -> None:
    """A statement that is only the call; a ``with`` of the call alone gives its block back."""
    import libcst as cst

    statement = source.statement(edit.line)
    alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    if alone and isinstance(expr := statement.body[0], cst.Expr) and isinstance(expr.value, cst.Call):  # type: ignore[attr-defined]
        found = _ends(expr.value, edit.target)
    elif isinstance(statement, cst.With) and len(statement.items) == 1 and statement.items[0].asname is None:
        thing = statement.items[0].item
        found = isinstance(thing, cst.Call) and _ends(thing, edit.target)
        found = found and isinstance(statement.body, cst.IndentedBlock)
    else:
        found = False
    if not found:
        raise Unwritable(f"the line is more than a call of {edit.target}")
    block = getattr(next(source.parents(statement)), "body", ())
    if alone and len([s for s in block if s not in changes.removed]) == 1:
        raise Unwritable("nothing would be left in its block")
    changes.removed.add(statement)


def replace_value(source: Source, changes: Changes, edit: Edit) -> None:
    """What is added in ``target += value``."""
    import libcst as cst

    statement = source.statement(edit.line)
    found = [a for a in source.inside(statement, cst.AugAssign) if dotted(a.target) == edit.target]
    if len(found) != 1:
        raise Unwritable(f"{edit.target} is not added to there")
    changes.templates[found[0]].append(edit.code)


KINDS: dict[str, Callable[[Source, Changes, Edit], None]] = {
    function.__name__: function
    for function in (
        set_keyword, wrap_with, replace_call, replace_iterable, insert_before, insert_after, decorate, remove,
        replace_value, flip_batches, wrap_dataset,
    )
}  # fmt: skip
