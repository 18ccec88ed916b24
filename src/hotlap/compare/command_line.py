"""Which words of two command lines differ, options with their values."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from difflib import SequenceMatcher

from hotlap.records.comparison import Change

__all__ = ["command_changes"]


def command_changes(a: Sequence[str], b: Sequence[str]) -> list[Change]:
    """One change per option or word that differs (``--batch 32`` and ``--batch 64``), or stretch of them."""
    old, new = _units(a), _units(b)
    found = []
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        before, after = old[i:j], new[k:m]
        if len(before) == len(after):
            found += [_change((x,), (y,)) for x, y in zip(before, after, strict=True)]
        elif not before or not after:
            found += [_change((x,), ()) for x in before] + [_change((), (y,)) for y in after]
        else:
            found.append(_change(before, after))
    return found


def _change(before: Sequence[tuple[str, ...]], after: Sequence[tuple[str, ...]]) -> Change:
    return Change("command", _option(before, after), _text(before), _text(after))


def _option(before: Sequence[tuple[str, ...]], after: Sequence[tuple[str, ...]]) -> str:
    """The option that the change is about; ``words`` where it is not one."""
    names = {unit[0].partition("=")[0] for unit in (*before, *after) if unit[0].startswith("-")}
    return names.pop() if len(names) == 1 else "words"


def _text(units: Sequence[tuple[str, ...]]) -> str | None:
    return " ".join(shlex.join(unit) for unit in units) or None


def _units(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Words, each option together with the word behind it that is no option (whether it is its value, or a file of
    the script's, only the script knows)."""
    units: list[tuple[str, ...]] = []
    for word in words:
        last = units[-1] if units else ()
        takes = len(last) == 1 and last[0].startswith("-") and "=" not in last[0] and last[0] not in ("-m", "--")
        if takes and not word.startswith("-"):
            units[-1] = (*last, word)
        else:
            units.append((word,))
    return units
