"""Statements taken out of a block, and the comments around them that stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["left_over", "settled", "unwrapped"]

_RULE = re.compile(r"([-=#*~])\1\1")
"""In a comment that heads a section: ``# ---- training ----``."""


def left_over(lines: Sequence[cst.EmptyLine]) -> cst.SimpleStatementLine:
    """A place holder for a statement, with the lines above it: without the comment right above, which is about it."""
    end = len(lines)
    while end and (comment := lines[end - 1].comment) is not None and not _RULE.search(comment.value):
        end -= 1
    return _holder(lines[:end])


def unwrapped(block: cst.With) -> tuple[list[Any], cst.SimpleStatementLine]:
    """The statements of a ``with``, and a place holder for the comments at its end."""
    import libcst as cst

    assert isinstance(block.body, cst.IndentedBlock)
    comment = block.body.header.comment
    head = [*block.leading_lines, *([cst.EmptyLine(comment=comment)] if comment is not None else [])]
    first: Any
    first, *others = block.body.body
    first = first.with_changes(leading_lines=[*head, *first.leading_lines])
    return [first, *others], _holder(block.body.footer)


def _holder(lines: Sequence[cst.EmptyLine]) -> cst.SimpleStatementLine:
    import libcst as cst

    return cst.SimpleStatementLine([cst.Pass()], leading_lines=lines)  # libcst drops one that is empty


def settled(block: Any, gone: set[Any]) -> Any:
    """The block without the place holders: what they held goes above the next statement, or to the block's end."""
    body: list[Any] = []
    held: list[cst.EmptyLine] = []
    for node in block.body:
        if node in gone:
            held = _joined(held, node.leading_lines)
            continue
        body.append(node.with_changes(leading_lines=_joined(held, node.leading_lines)) if held else node)
        held = []
    if len(body) == len(block.body):
        return block
    if not any(line.comment for line in held):
        held = []
    return block.with_changes(body=body, footer=[*held, *block.footer])


def _joined(above: Sequence[cst.EmptyLine], below: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """One after the other; of the blank lines where they meet, the longer run."""
    last = next((n for n, line in enumerate(reversed(above)) if line.comment), len(above))
    first = next((n for n, line in enumerate(below) if line.comment), len(below))
    return [*above[: len(above) - min(last, first)], *below]
