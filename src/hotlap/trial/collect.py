"""Adds to a timeline what only the user's files know: the text of lines, and the loops around them."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hotlap.records.code_shape import CodeShape
from hotlap.records.findings import MOST_TEXT
from hotlap.records.timeline import Timeline
from hotlap.trial.code_shapes import find_shapes
from hotlap.trial.loop_headers import loops_of

__all__ = ["annotate"]


_CLOCKS_APART_S = 2.0
"""A file may have its time from another machine's clock; a script that was saved and started at once was not edited."""


@dataclass
class _File:
    lines: list[str] = field(default_factory=list)
    loops: list[tuple[int, int, str]] = field(default_factory=list)
    """(first line, last line, header), outer loops before inner ones."""
    functions: list[tuple[int, int]] = field(default_factory=list)
    """(first line, last line) of each body."""
    shapes: list[CodeShape] = field(default_factory=list)

    def loop_around(self, line: int) -> str | None:
        """The innermost loop's header. A loop around a function does not repeat the function's lines."""
        inner = max((first for first, last in self.functions if first <= line <= last), default=0)
        found = [header for first, last, header in self.loops if inner <= first <= line <= last]
        return found[-1] if found else None


def annotate(timeline: Timeline, texts: Mapping[str, str] | None = None) -> Timeline:
    """Fill ``source``, ``loops`` and ``shapes`` for the user's frames, of the loader workers too; the timeline is
    returned.

    ``texts``: what is in no file, by the name that stands for it (a notebook's cells). A file that cannot be read or
    parsed any more, or that was edited since the run began (its lines are no longer those that ran), adds nothing.
    """
    files: dict[str, _File] = {}
    timeline.shapes.clear()
    for part in (timeline, *timeline.workers, *timeline.ranks):
        for frame in part.frame.values():
            if not frame.user:
                continue
            file = files.get(frame.file)
            if file is None:
                known = (texts or {}).get(frame.file)
                header = timeline.header
                file = _read(Path(header.cwd) / frame.file, header.unix_s) if known is None else _parsed(known)
                files[frame.file] = file
                timeline.shapes += [replace(shape, file=frame.file) for shape in file.shapes]
            key = f"{frame.file}:{frame.line}"
            if 1 <= frame.line <= len(file.lines):
                part.source[key] = timeline.source[key] = file.lines[frame.line - 1].strip()[:MOST_TEXT]
            loop = file.loop_around(frame.line)
            if loop is not None:
                part.loops[key] = timeline.loops[key] = loop[:MOST_TEXT]
    _kept_lines(timeline, files)
    return timeline


def _kept_lines(timeline: Timeline, files: dict[str, _File]) -> None:
    """Where the variables that keep tensors are added to: the line nearest to the frame that was looked at."""
    for row in timeline.setting:
        frame = timeline.frame.get(row.frame or 0)
        if row.name != "retained" or frame is None:
            continue
        lines = files[frame.file].lines if frame.file in files else []
        for name in {str(found[0]) for found in row.value.get("found", []) if found}:
            spelled = re.escape(name)
            adds = re.compile(rf"\b{spelled}(?:\.(?:append|appendleft|add|extend)\(|\[[^\]]*\]\s*=[^=]|\s*\+=)"
                              rf"|\b{spelled}\s*=\s*{spelled}\s*\+")  # fmt: skip
            at = [number for number, line in enumerate(lines, 1) if adds.search(line)]
            if at:
                nearest = min(at, key=lambda number: abs(number - frame.line))
                timeline.kept[f"{frame.file}:{name}"] = nearest
                timeline.source[f"{frame.file}:{nearest}"] = lines[nearest - 1].strip()[:MOST_TEXT]


def _read(path: Path, began_unix_s: float) -> _File:
    try:
        if path.stat().st_mtime > began_unix_s + _CLOCKS_APART_S:
            return _File()
        try:
            with tokenize.open(path) as source:  # in the encoding that it names, without a mark in front
                return _parsed(source.read())
        except (SyntaxError, UnicodeDecodeError):
            return _parsed(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return _File()


def _parsed(text: str) -> _File:
    # not splitlines(): a form feed inside a line starts no new line for Python
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return _File(lines)
    return _File(lines, loops_of(tree, lines), _bodies(tree), find_shapes(tree, lines))


def _bodies(tree: ast.Module) -> list[tuple[int, int]]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(node.body[0].lineno, node.end_lineno or node.lineno) for node in functions]
