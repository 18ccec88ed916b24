"""One option of a command: its value read, or written, the rest left as it stands."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hotlap.records.errors import EXIT_USAGE, HotlapError

__all__ = ["read_option", "write_option"]

_NUMBER = re.compile(r"[+-]?\d[\w.+-]*")
_SHORT = re.compile(r"-[A-Za-z]")


def read_option(command: Sequence[str], option: str) -> str | None:
    """The option's value in ``command``; None when it is not there.

    Raises HotlapError when it stands there twice (which one counts is the script's affair) or without a value.
    """
    place = _place(command, option)
    return None if place is None else place[2]


def write_option(command: Sequence[str], option: str, value: str) -> list[str]:
    """The command with ``value`` for the option, in the form that it has there; added at the end when it is not there.

    ``option``: ``--batch-size``, ``-b``, or ``batch_size=`` for a script that reads ``name=value`` words.
    """
    place = _place(command, option)
    if place is None:
        return [*command, *([option + value] if option.endswith("=") else [option, value])]
    index, before, _ = place
    return [*command[:index], before + value, *command[index + 1 :]]


def _place(command: Sequence[str], option: str) -> tuple[int, str, str] | None:
    """Index of the word that holds the value, what stands before the value in that word, and the value."""
    name = option.removesuffix("=")
    found = []
    for index in range(_first(command), len(command)):
        word = command[index]
        if word == name and name.startswith("-"):
            value = command[index + 1] if index + 1 < len(command) else ""
            if not value or (value.startswith("-") and not _NUMBER.fullmatch(value)):
                raise HotlapError(
                    f"The option {name} has no value in the command.", "A knob needs one that has.", EXIT_USAGE
                )
            found.append((index + 1, "", value))
        elif word.startswith(name + "="):
            found.append((index, name + "=", word.removeprefix(name + "=")))
        elif _SHORT.fullmatch(name) and word.startswith(name) and _NUMBER.fullmatch(word[2:]):
            found.append((index, name, word[2:]))
    if len(found) > 1:
        raise HotlapError(f"The option {name} stands in the command {len(found)} times.", "Keep one.", EXIT_USAGE)
    return found[0] if found else None


def _first(command: Sequence[str]) -> int:
    """Where the script's own options begin: a launcher before the script (torchrun) has options too."""
    return next((i + 1 for i, word in enumerate(command) if word.endswith((".py", ".sh"))), 1)
