"""Finding the levers: every module of the catalog folder is one. There is no list to edit."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from typing import cast

from hotlap.lever import catalog
from hotlap.lever.contract import Lever
from hotlap.records.errors import EXIT_USAGE, HotlapError

__all__ = ["lever", "levers"]


def levers() -> dict[str, Lever]:
    """All levers by id, sorted. Raises HotlapError when two modules claim the same id."""
    found: dict[str, Lever] = {}
    for info in pkgutil.iter_modules(catalog.__path__):
        if info.name.startswith("_"):
            continue
        module = cast(Lever, importlib.import_module(f"{catalog.__name__}.{info.name}"))
        if module.ID in found:
            raise HotlapError(f"Two levers have the id {module.ID!r}: {info.name} and another.", "Rename one of them.")
        found[module.ID] = module
    return dict(sorted(found.items()))


def lever(id: str) -> Lever:
    """One lever by id. Raises HotlapError that names the nearest id."""
    known = levers()
    if id in known:
        return known[id]
    near = difflib.get_close_matches(id, known, n=1, cutoff=0.4)
    hint = f"Did you mean {near[0]!r}?" if near else "`hotlap levers` lists them."
    raise HotlapError(f"There is no lever {id!r}.", hint, EXIT_USAGE)
