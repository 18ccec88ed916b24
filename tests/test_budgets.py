"""Sizes that keep a file one idea: lines a file and a function, arguments, lines of a lever."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE_LINES = 250
FUNCTION_LINES = 60
ARGUMENTS = 7
LEVER_LINES = 150
MEDIAN_LINES = 130
"""About a hundred, as designed; this is where the alarm rings."""


def sources(*folders: str) -> list[Path]:
    return sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py"))


def table(found: dict[str, int]) -> str:
    return "\n".join(f"{count:5d}  {name}" for name, count in found.items())


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_files() -> None:
    long = {str(p.relative_to(ROOT)): n for p in sources("src", "bench") if (n := lines(p)) > FILE_LINES}
    assert not long, table(long)


def test_the_median_file_is_short() -> None:
    counts = sorted(lines(p) for p in sources("src") if p.name != "__init__.py")
    assert counts[len(counts) // 2] <= MEDIAN_LINES


def test_levers() -> None:
    folder = ROOT / "src/hotlap/lever/catalog"
    long = {p.name: n for p in sorted(folder.glob("*.py")) if (n := lines(p)) > LEVER_LINES}
    assert not long, table(long)


def test_functions() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": n
        for path in sources("src", "bench")
        for node in functions(path)
        if (n := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    }
    assert not long, table(long)


def test_arguments() -> None:
    many = {}
    for path in sources("src", "bench"):
        for node in functions(path):
            a = node.args
            count = len(a.posonlyargs) + len(a.args) + len(a.kwonlyargs)
            count -= bool(a.args) and a.args[0].arg in ("self", "cls")
            if count > ARGUMENTS:
                many[f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"] = count
    assert not many, table(many)
