"""New arguments of a call, in the way that the call is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotlap.patch.source import Source

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["appended"]

WIDTH = 120
"""A call that grows past this is put on lines of its own, unless the file has longer lines already."""


def appended(source: Source, original: cst.Call, call: cst.Call, args: list[Any], added: list[Any]) -> cst.Call:
    """The call with the arguments ``added``: on its line, or one to a line."""
    import libcst as cst

    if len(args) == 1 and isinstance(args[0].value, cst.GeneratorExp) and not args[0].value.lpar:
        bare = args[0].value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        args = [args[0].with_changes(value=bare)]  # beside another argument it has to have brackets of its own
    first, last = source.span(original)
    if args and first != last:
        return call.with_changes(args=_below(call, args, added))
    joint = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    every = [*args, *added]
    every = [
        *(a.with_changes(comma=joint) for a in every[:-1]),
        every[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT),
    ]
    grown = len(source.lines[first - 1]) + sum(len(source.module.code_for_node(a)) + 2 for a in added)
    if grown <= max(WIDTH, *(len(line) for line in source.lines)):
        return call.with_changes(args=every)
    indent = _indent(source.lines[first - 1])
    within = indent.removeprefix(_indent(source.lines[_statement_line(source, original) - 1]))  # of an open bracket
    break_ = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(f"{within}    "))
    close = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(within))
    if len(indent) + 4 + sum(len(source.module.code_for_node(a)) for a in every) > WIDTH:
        each = cst.Comma(whitespace_after=break_)
        every = [a.with_changes(comma=each) for a in every]
        every[-1] = every[-1].with_changes(comma=cst.Comma(whitespace_after=close))
    else:
        every[-1] = every[-1].with_changes(whitespace_after_arg=close)
    return call.with_changes(args=every, whitespace_before_args=break_)


def _below(call: cst.Call, args: list[Any], added: list[Any]) -> list[Any]:
    """Arguments of a call of several lines: a comment stays with the argument that it stands behind."""
    import libcst as cst

    break_ = _break_of(call, args)
    broken = isinstance(break_, cst.ParenthesizedWhitespace)
    joint = cst.Comma(whitespace_after=break_)
    trailing, after = args[-1].comma, args[-1].whitespace_after_arg
    held = trailing.whitespace_after if isinstance(trailing, cst.Comma) else after
    if broken and isinstance(held, cst.ParenthesizedWhitespace):
        commented = cst.Comma(whitespace_after=break_.with_changes(first_line=held.first_line))
        args[-1] = args[-1].with_changes(comma=commented)
        held = held.with_changes(first_line=cst.TrailingWhitespace())
    else:
        args[-1] = args[-1].with_changes(comma=joint)
    added = [a.with_changes(comma=joint) for a in added]
    if isinstance(trailing, cst.Comma):
        added[-1] = added[-1].with_changes(comma=cst.Comma(whitespace_after=held))
    else:  # the closing bracket's place is in the last argument
        added[-1] = added[-1].with_changes(comma=trailing, whitespace_after_arg=held)
        args[-1] = args[-1].with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
    return [*args, *added]


def _break_of(call: cst.Call, args: list[Any]) -> Any:
    """What stands between its arguments: a line's end without the comments there, or a blank."""
    import libcst as cst

    spaces = [a.comma.whitespace_after for a in args[:-1] if isinstance(a.comma, cst.Comma)]
    for space in (*spaces, call.whitespace_before_args):
        if isinstance(space, cst.ParenthesizedWhitespace):
            return space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    return cst.SimpleWhitespace(" ")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _statement_line(source: Source, node: cst.CSTNode) -> int:
    """The line on which the innermost statement around the node begins: libcst indents from there."""
    import libcst as cst

    for parent in source.parents(node):
        if isinstance(parent, cst.BaseStatement):
            return source.place(parent)[0]
    return source.place(node)[0]
