"""A module's children and parameters by identity alone: a script may override how modules compare, hash or list them.

Reads ``Module``'s own tables; nothing of the script's runs, and no torch function is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["modules_of", "parameters_of"]


def modules_of(root: Any) -> Iterator[Any]:
    """The module and all below it, each once."""
    seen = {id(root)}
    waiting = [root]
    while waiting:
        module = waiting.pop()
        yield module
        for child in list(_table(module, "_modules").values()):
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)


def parameters_of(root: Any) -> Iterator[Any]:
    """All parameters below the module, each once."""
    seen = set()
    for module in modules_of(root):
        for parameter in list(_table(module, "_parameters").values()):
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield parameter


def _table(module: Any, name: str) -> Any:
    found = object.__getattribute__(module, "__dict__").get(name)
    return {} if found is None else found  # a scripted module has tables of another type
