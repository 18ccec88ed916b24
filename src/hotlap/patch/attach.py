"""The alternative to a patch: one line that attaches the plan from inside the script."""

from __future__ import annotations

import ast
import codecs
import io
import json
import tokenize

from hotlap.patch.patch import Patched
from hotlap.records.errors import HotlapError

__all__ = ["attach_file"]


def attach_file(name: str, data: bytes, plan: str) -> Patched:
    """The script with ``import hotlap; hotlap.attach(plan)`` behind its docstring and ``__future__`` imports."""
    try:
        tree = ast.parse(data)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as err:
        raise HotlapError(f"{name}:{err.lineno}: this is not Python that can be read.", exit_code=2) from err
    text = f"import hotlap; hotlap.attach({json.dumps(plan, ensure_ascii=False)})"
    line = text.encode(encoding.removesuffix("-sig"), "backslashreplace")  # what has no letter there is an escape
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
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    lines = data.removeprefix(mark).split(b"\n")
    after = mark + b"\n".join([*lines[:at], line + newline.removesuffix(b"\n"), *lines[at:]])
    try:
        ast.parse(after)
    except SyntaxError as err:
        what = f"{name}:{err.lineno}: the line would leave source that does not parse ({err.msg})."
        raise HotlapError(what, f"Put it in by hand: {text}") from err
    return Patched(name, data, after, written=["attach"])
