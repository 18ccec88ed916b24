"""Names in syntax trees."""

from __future__ import annotations

import ast

__all__ = ["called_name", "names_in"]


def names_in(node: ast.AST) -> set[str]:
    """Names of a node: ``x`` of ``x[:, t]``, and ``t``."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def called_name(call: ast.AST) -> str:
    """``f`` of ``f(x)`` and ``a.f(x)``; empty where nothing is called by a name."""
    if not isinstance(call, ast.Call):
        return ""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
