"""From a node to a problem."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hotlap.lint.problem import Problem
from hotlap.lint.script import Script
from hotlap.records.edits import Edit

__all__ = ["problem"]


def problem(
    script: Script, node: ast.expr | ast.stmt, cause: str, message: str, advice: str, edits: Sequence[Edit] = ()
) -> Problem:
    """The cause at the node's place."""
    line = script.lines[node.lineno - 1] if node.lineno <= len(script.lines) else ""
    col = len(line.encode()[: node.col_offset].decode(errors="replace")) + 1
    return Problem(cause, script.name, node.lineno, col, message, advice, list(edits), line.strip())
