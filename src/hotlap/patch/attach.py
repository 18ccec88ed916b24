"""The alternative to a patch: one line that attaches the plan from inside the script."""

from __future__ import annotations

import ast

from hotlap.patch.patch import Patched
from hotlap.records.errors import HotlapError

__all__ = ["attach_file"]


def attach_file(name: str, data: bytes, plan: str) -> Patched:
    """The script with ``import hotlap; hotlap.attach(plan)`` behind its docstring and ``__future__`` imports."""
    try:
        tree = ast.parse(data)
    except SyntaxError as err:
        raise HotlapError(f"{name}:{err.lineno}: this is not Python that can be read.", exit_code=2) from err
    line = f"import hotlap; hotlap.attach({plan!r})".replace("'", '"').encode()
    if any("hotlap.attach(" in ast.unparse(node) for node in tree.body):
        return Patched(name, data, data)
    at = 0
    for position, node in enumerate(tree.body):
        docstring = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            at = at or node.lineno - 1
            break
        at = node.end_lineno or at
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    lines = data.split(b"\n")
    after = b"\n".join([*lines[:at], line + newline.removesuffix(b"\n"), *lines[at:]])
    ast.parse(after)
    return Patched(name, data, after, written=["attach"])
