"""Edits applied to one file: the new bytes, what was written, and what a person has to do."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hotlap.patch.additions import add_helpers
from hotlap.patch.changes import Changes
from hotlap.patch.kinds import KINDS
from hotlap.patch.source import Source, Unwritable
from hotlap.records.edits import Edit
from hotlap.records.errors import HotlapError
from hotlap.records.findings import MOST_TEXT

__all__ = ["ByHand", "Patched", "Wanted", "patch_file"]


@dataclass(frozen=True)
class Wanted:
    """An edit, who asks for it (a lever, or a cause), and the text that its line had when it was found."""

    edit: Edit
    by: str
    expected: str = ""
    move: int = 0
    """Edits of the same ``by`` and ``move`` are written together or not at all: half of a change may be a wrong one."""


@dataclass(frozen=True)
class ByHand:
    """What a person has to do, and where."""

    by: str
    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Patched:
    """A file before and after."""

    name: str
    before: bytes
    after: bytes
    by_hand: list[ByHand] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    """Who got at least one edit into the file."""


def patch_file(name: str, data: bytes, wanted: Sequence[Wanted], beside: Mapping[str, bytes] | None = None) -> Patched:
    """Apply what can be written. HotlapError where a line is not what it was, or two edits contradict each other.

    ``beside`` are other files of the same run, by name: what they do may make a change of this one a wrong one.
    """
    source = Source(name, data, beside)
    changes = Changes(source)
    by_hand: list[ByHand] = []
    written = []
    moves: dict[tuple[str, int], list[Wanted]] = {}
    for want in wanted:
        moves.setdefault((want.by, want.move), []).append(want)
    for (by, _), wants in moves.items():
        edits = [w.edit for w in wants]
        refused = _record(source, changes, wants)
        for edit in edits:
            if edit.kind == "advice":
                by_hand.append(ByHand(by, name, edit.line, edit.advice))
            elif refused is not None:
                line = refused[0].line
                why = f"{refused[1]}" if edit is refused[0] else f"it goes with the change of line {line} that was not"
                by_hand.append(ByHand(by, name, edit.line, f"{_in_words(edit)}: not written, {why}."))
        if refused is None and any(e.kind != "advice" for e in edits):
            written.append(by)
    text = changes.code()
    newline = source.module.default_newline
    if text != source.module.code:
        _check_parses(name, text)
        text = add_helpers(text, name)
        if newline == "\r\n" and _only(data, b"\r\n"):  # else the lines that were there keep their own ends
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    after = source.bom + _encoded(source, text)
    _check_parses(name, after)
    return Patched(name, data, after, by_hand, list(dict.fromkeys(written)))


def _record(source: Source, changes: Changes, wants: Sequence[Wanted]) -> tuple[Edit, Unwritable] | None:
    """Record every edit of a move; or none, and the one that cannot be written with the reason."""
    before = changes.kept()
    for want in wants:
        edit = want.edit
        if edit.kind == "advice":
            continue
        if edit.kind not in KINDS:
            raise HotlapError(f"{want.by} asks for an edit of the kind {edit.kind!r}.", f"Known: {', '.join(KINDS)}.")
        _check_line(source, want)
        try:
            KINDS[edit.kind](source, changes, edit)
        except Unwritable as err:
            changes.put_back(before)
            return edit, err
    return None


def _encoded(source: Source, text: str) -> bytes:
    encoding = source.module.encoding
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as err:
        raise HotlapError(
            f"{source.name}: the patch writes {err.object[err.start]!a}, which {encoding}, the file's encoding, lacks.",
            "Nothing was written. Save the file as UTF-8 and patch again.",
        ) from err


def _only(data: bytes, newline: bytes) -> bool:
    """Whether every line of the file ends the same way."""
    return data.count(b"\n") == data.count(newline)


def _check_line(source: Source, want: Wanted) -> None:
    line = want.edit.line
    here = source.lines[line - 1].strip() if 0 < line <= len(source.lines) else ""
    expected = want.expected.strip()
    cut = len(expected) >= MOST_TEXT and here.startswith(expected)  # a run keeps no more of a line
    if want.expected and here != expected and not cut:
        raise HotlapError(
            f"{source.name}:{line}: the line is {here!r}; {want.by} was found when it was {want.expected.strip()!r}.",
            "The code has moved since: run `hotlap speedup` again, then patch with the plan that it writes.",
        )


def _in_words(edit: Edit) -> str:
    if edit.advice:
        return edit.advice.rstrip(".")
    if edit.keywords:
        return ", ".join(f"{k}={v!r}" for k, v in edit.keywords.items())
    return edit.code or edit.target


def _check_parses(name: str, data: str | bytes) -> None:
    try:
        ast.parse(data)
    except SyntaxError as err:
        raise HotlapError(
            f"{name}:{err.lineno}: the patch would leave source that does not parse ({err.msg}).",
            "Nothing was written. Please report it with the file.",
        ) from err
