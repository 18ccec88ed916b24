"""The source of a function of the script's, as a tree."""

from __future__ import annotations

import ast
import inspect
import textwrap
import tokenize
from types import FunctionType

__all__ = ["source_tree"]


def source_tree(function: FunctionType) -> ast.Module | None:
    """The statement that the code which runs was written as, with its decorators; of a lambda the one that it stands
    in. None where that is nowhere, or no whole statement (a lambda in the middle of a call)."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function.__code__)))
    except (OSError, TypeError, SyntaxError, ValueError, tokenize.TokenError):
        return None
