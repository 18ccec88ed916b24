"""A cell's code as IPython itself would run it, with the lines that the notebook shows, and the names of all cells."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from types import CodeType
from typing import Any

from hotlap.records.cells import cell_name

__all__ = ["CellCode", "cell_number", "cell_texts", "compile_cell"]


@dataclass(frozen=True)
class CellCode:
    """The statements of a cell, and its last expression, whose value the notebook shows."""

    statements: CodeType
    value: CodeType | None

    def run(self, shell: Any) -> Any:
        """Run it in the user's namespace."""
        __tracebackhide__ = True
        exec(self.statements, shell.user_global_ns, shell.user_ns)
        return None if self.value is None else eval(self.value, shell.user_global_ns, shell.user_ns)


def cell_number(shell: Any) -> int:
    """The number of the cell that runs; IPython's own counter may be at the next one already."""
    return len(shell.history_manager.input_hist_parsed) - 1


def compile_cell(shell: Any, line: str, cell: str) -> CellCode:
    """Compile what stands below ``%%hotlap LINE``. Raises the SyntaxError that the cell deserves.

    The magic's own line counts, so that lines are those of the cell as it is shown.
    """
    __tracebackhide__ = True
    text = "\n" + shell.transform_cell(cell)
    name = shell.compile.cache(text, cell_number(shell), raw_code=f"%%hotlap {line}\n{cell}")
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename=name))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    statements = shell.compile(tree, name, "exec")
    value = None if last is None else shell.compile(ast.Expression(last.value), name, "eval")
    return CellCode(statements, value)


def cell_texts(shell: Any) -> dict[str, tuple[str, str]]:
    """By the file name that IPython gave to a cell's code: the cell's name (``cell In[3]``) and its text."""
    found = {}
    for file, entry in list(linecache.cache.items()):
        said = shell.compile.format_code_name(file)
        if said is not None and said[0] == "Cell" and len(entry) == 4:
            number = int(said[1].removeprefix("In[").removesuffix("]"))
            found[file] = (cell_name(number), "".join(entry[2]))
    return found
