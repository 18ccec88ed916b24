"""The data set that a loader is given, and one around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hotlap.patch.changes import Changes
from hotlap.patch.keywords import by_position, meant_calls, refuse_changed_data
from hotlap.patch.readers import full_name, full_names
from hotlap.patch.source import Source, Unwritable, dotted
from hotlap.records.edits import Edit

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["wrap_dataset"]

_AT_RANDOM = re.compile(r"(?:.*\.)?(?:Random[A-Z]|RandAugment|ColorJitter|AutoAugment|TrivialAugment|AugMix)")
"""Transforms of torchvision and its like that draw: their names say so."""
_DRAWS = re.compile(r"random\.|numpy\.random\.|torch\.rand")


def wrap_dataset(source: Source, changes: Changes, edit: Edit) -> None:
    """Another data set around the one that a DataLoader without worker processes is given."""
    calls = [c for c in source.calls(source.statement(edit.line)) if (dotted(c.func) or "").endswith("DataLoader")]
    calls = meant_calls(source, calls, edit)
    if not calls:
        raise Unwritable("no call of DataLoader is seen there")
    call = calls[0]
    given = [a for a in call.args if a.keyword is not None and a.keyword.value == "dataset"] or list(call.args[:1])
    if not given or given[0].star or (given[0].keyword is not None and given[0].keyword.value != "dataset"):
        raise Unwritable("the call takes its data set from * or **")
    if _workers(source, changes, call, edit.keywords.get("num_workers", 0)):
        raise Unwritable("worker processes would each keep samples of their own")
    refuse_changed_data(source, call, "what is kept would not be what {0} (line {1}) makes of them")
    drawn = _drawn_at_random(source)
    if drawn is not None:
        raise Unwritable(f"only parts of them never change: {drawn[0]} (line {drawn[1]}) draws at random")
    text = source.code(given[0].value)
    if not text.startswith(edit.code.partition("{")[0]):
        changes.set_argument(call, "dataset", edit.code.replace("{dataset}", text), given[0].value)


def _workers(source: Source, changes: Changes, call: cst.Call, seen: int) -> int:
    """Worker processes of a loader: what a change sets, else what is written there, else what the run had."""
    given = next((a.value for a in call.args if a.keyword is not None and a.keyword.value == "num_workers"), None)
    given = given if given is not None else by_position(source, call, "num_workers")
    set_to = changes.keywords.get(call, {}).get("num_workers", changes.values.get(given))
    if set_to is not None:
        return int(set_to)
    text = source.code(given) if given is not None else ""
    return int(text) if text.isdigit() else seen


def _drawn_at_random(source: Source) -> tuple[str, int] | None:
    """A transform that says by its name that it draws; or a class with ``__getitem__`` that calls what draws."""
    import libcst as cst

    known = full_names(source)
    for call in source.of_type(cst.Call):
        name = full_name(call, known)
        inside = next((p for p in source.parents(call) if isinstance(p, cst.ClassDef)), None)
        if _AT_RANDOM.match(name) or (inside is not None and _DRAWS.match(name) and _gives_samples(source, inside)):
            return dotted(call.func) or name, source.place(call)[0]
    return None


def _gives_samples(source: Source, cls: cst.ClassDef) -> bool:
    import libcst as cst

    return any(f.name.value == "__getitem__" for f in source.inside(cls, cst.FunctionDef))
