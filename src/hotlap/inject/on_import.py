"""Call back once a module has been executed, before the code that imports it goes on."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

__all__ = ["forget", "on_import"]

_waiting: dict[str, list[Callable[[ModuleType], None]]] = {}


class _Finder:
    """First on ``sys.meta_path``; answers only for modules that somebody waits for."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is _Finder or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _call_after_exec(spec.loader, name)
                return spec
        return None


def _call_after_exec(loader: Any, name: str) -> None:
    """Shadow ``exec_module`` on this loader instance for one call; the loader is left as it was."""
    original = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        with contextlib.suppress(AttributeError):  # a loader that keeps no instance attributes shadows nothing
            del loader.exec_module
        original(module)
        while name in _waiting:  # a callback may ask for the same module, which still counts as being imported
            for callback in _waiting.pop(name):
                callback(module)

    try:
        loader.exec_module = exec_module
    except (AttributeError, TypeError) as err:
        raise ImportError(f"hotlap cannot watch the import of {name}: {err}") from err


def on_import(name: str, callback: Callable[[ModuleType], None]) -> None:
    """Call ``callback(module)`` when ``name`` has been imported; at once if it already is."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        callback(module)
        return
    _waiting.setdefault(name, []).append(callback)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def forget(callback: Callable[[ModuleType], None]) -> None:
    """Stop waiting with this callback."""
    for name, callbacks in list(_waiting.items()):
        _waiting[name] = [c for c in callbacks if c is not callback]
        if not _waiting[name]:
            del _waiting[name]
    if not _waiting and _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)
