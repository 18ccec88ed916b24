"""Which functions are the user's own, and what their code names."""

from __future__ import annotations

import contextlib
import dis
import importlib.util
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeGuard

from hotlap.records.installed import is_installed

__all__ = [
    "ALONE",
    "ModuleNames",
    "codes_in",
    "global_names_in",
    "imports_in",
    "is_standard",
    "is_users",
    "is_users_module",
    "is_users_unread",
    "names_in",
]

ALONE = 2
"""References to a function that nothing but its module's names holds, while they are counted."""


def is_users(function: Any) -> TypeGuard[FunctionType]:
    """A function in Python that no installed package brought."""
    return isinstance(function, FunctionType) and not is_installed(function.__code__.co_filename)


def is_standard(module: str) -> bool:
    """Whether a module is the standard library's, or built in."""
    return module.partition(".")[0] in sys.stdlib_module_names


def is_users_module(name: str, module: ModuleType | None = None) -> bool:
    """Whether no installed package brought the module of this name, which need not be known by it."""
    file = getattr(module or sys.modules.get(name), "__file__", None)
    return not is_standard(name) and not is_installed(str(file or ""))


def is_users_unread(name: str) -> bool:
    """Whether a module of this name could be imported that is the user's, and is not imported yet."""
    if name in sys.modules or is_standard(name):
        return False
    spec = None
    with contextlib.suppress(ImportError, ValueError, AttributeError):  # the script's to hear of, at its own import
        spec = importlib.util.find_spec(name.partition(".")[0])
    return spec is not None and not is_installed(str(spec.origin or ""))


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


def global_names_in(code: CodeType) -> set[str]:
    """Names that the code, or a function inside it, looks for among those of its module."""
    found = [i for one in codes_in(code) for i in dis.get_instructions(one)]
    return {i.argval for i in found if "GLOBAL" in i.opname or i.opname == "LOAD_NAME"}


def imports_in(function: FunctionType, code: CodeType) -> Iterator[str]:
    """Full names of the modules that ``code``, which is the function's, imports whenever it runs."""
    package = function.__globals__.get("__package__") or ""
    for one in codes_in(code):
        found = [i for i in dis.get_instructions(one) if i.opname != "EXTENDED_ARG"]
        for number, instruction in enumerate(found):
            if instruction.opname == "IMPORT_NAME":
                level = found[number - 2].argval
                with contextlib.suppress(ImportError, ValueError):  # a relative one outside of any package
                    yield importlib.util.resolve_name("." * level + instruction.argval, package)
