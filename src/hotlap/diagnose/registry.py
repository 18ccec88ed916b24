"""The causes, found by looking into the folder: adding one is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from hotlap.diagnose import causes
from hotlap.diagnose.view import View
from hotlap.records.causes import CAUSES
from hotlap.records.findings import Finding

__all__ = ["Cause", "all_causes"]


@dataclass(frozen=True)
class Cause:
    """A module of ``causes/``: its id and its function."""

    id: str
    find: Callable[[View], Finding | None]


@cache
def all_causes() -> tuple[Cause, ...]:
    """Every cause by id. A module without ``CAUSE`` or with an id that the documents do not know is a TypeError."""
    found = {}
    for info in pkgutil.iter_modules(causes.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{causes.__name__}.{info.name}")
        cause, find = getattr(module, "CAUSE", None), getattr(module, "find", None)
        if cause not in CAUSES or not callable(find) or cause in found:
            raise TypeError(f"{module.__name__} must have its own CAUSE (one of findings.CAUSES) and find(view).")
        found[cause] = Cause(cause, find)
    return tuple(found[cause] for cause in CAUSES if cause in found)
