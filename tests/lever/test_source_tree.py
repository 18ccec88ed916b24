"""The source that is read is that of the code which runs."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from hotlap.lever.source_tree import source_tree


def twice(function: Callable[[], Any]) -> Callable[[], Any]:
    @functools.wraps(function)
    def both() -> Any:
        return function(), function()

    return both


@twice
def one() -> int:
    return 1


def nothing(*_: Any, **__: Any) -> None:
    return None


def text(function: Any) -> str | None:
    tree = source_tree(function)
    return None if tree is None else ast.unparse(tree)


def test_a_function_that_stands_before_another_is_read_itself() -> None:
    assert str(text(one)).endswith("return (function(), function())")
    assert str(text(twice)).startswith("def twice(")


def test_what_has_no_source_or_no_whole_statement_has_no_tree() -> None:
    alone = lambda rows: rows  # noqa: E731
    assert text(alone) == "alone = lambda rows: rows"
    found: list[Any] = []
    nothing(
        found.append(1),
        within=found.append(lambda rows: rows))  # fmt: skip
    assert text(found[1]) is None
    names: dict[str, Any] = {}
    exec("def made(): pass", names)
    assert text(names["made"]) is None
