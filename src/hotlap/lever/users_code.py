"""Which functions are the user's own, and what their code names."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, TypeGuard

__all__ = ["ALONE", "ModuleNames", "codes_in", "is_standard", "is_users", "names_in"]

ALONE = 2
"""References to a function that nothing but its module's names holds, while they are counted."""
_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def is_users(function: Any) -> TypeGuard[FunctionType]:
    """A function in Python that no installed package brought."""
    return isinstance(function, FunctionType) and not function.__code__.co_filename.startswith(_INSTALLED)


def is_standard(module: str) -> bool:
    """Whether a module is the standard library's, or built in."""
    return module.partition(".")[0] in sys.stdlib_module_names


class ModuleNames:
    """A module's names as attributes: the main script's namespace is that of no importable module."""

    def __init__(self, names: dict[str, Any]) -> None:
        object.__setattr__(self, "__dict__", names)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code, and that of the functions inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from codes_in(const)


def names_in(code: CodeType) -> Iterator[str]:
    """Names of attributes and globals that the code, or a function inside it, uses."""
    for one in codes_in(code):
        yield from one.co_names
