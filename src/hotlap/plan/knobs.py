"""Knobs that the user names: read from the command line, and their moves applied to the command or to a file's text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from hotlap.plan.command_option import read_option, write_option
from hotlap.plan.config_value import coerced, read_value, write_value
from hotlap.records.errors import EXIT_USAGE, HotlapError
from hotlap.records.knob import Knob, Scalar
from hotlap.records.plan import KNOB, Move

__all__ = ["by_hand", "changed_files", "parse_knobs", "rewritten", "same_value", "wrong_knob"]

HINT = "Write: --knob 'batch=--batch-size {24,32}' or --knob 'val=test_interval={1,2,3}@config.yaml'."
_KNOB = re.compile(r"([A-Za-z][\w-]*)=([^{}]*[=\s])\{([^{}]*)\}\s*(?:@(.+))?")


def parse_knobs(texts: Iterable[str], command: Sequence[str]) -> tuple[Knob, ...]:
    """The knobs of all ``--knob``, each checked against the command or its file. Raises HotlapError in words."""
    knobs: list[Knob] = []
    for text in texts:
        knob = _parse(text.strip(), command)
        for other in knobs:
            if other.name == knob.name:
                raise _wrong(text, f"there is a knob named {knob.name!r} already")
            if (other.option.rstrip("="), other.file, other.key) == (knob.option.rstrip("="), knob.file, knob.key):
                raise _wrong(text, f"{other.id} sets the same")
        knobs.append(knob)
    return tuple(knobs)


def _parse(text: str, command: Sequence[str]) -> Knob:
    match = _KNOB.fullmatch(text)
    if match is None:
        raise _wrong(text, "it is not NAME=OPTION {VALUES} or NAME=KEY={VALUES}@FILE")
    name, head, inside, file = match.groups()
    head = head.rstrip()
    where, joint = (head[:-1].rstrip(), "=") if head.endswith("=") else (head, " ")
    words = [word.strip() for word in inside.split(",")]
    if not where or " " in where:
        raise _wrong(text, "one option or one key has to stand before the braces")
    if not all(words):
        raise _wrong(text, "a value is empty")
    if len(set(words)) < len(words):
        raise _wrong(text, "a value stands there twice")
    if file is None:
        if joint != "=" and not where.startswith("-"):
            raise _wrong(text, f"{where!r} is no option (it does not begin with `-`) and no file is named")
        option = where + ("=" if joint == "=" else "")
        knob = Knob(name, tuple(words), option=option, present=read_option(command, option))
    else:
        content = _content(file)
        present = read_value(content, file, where)
        values = tuple(coerced(word, present) for word in words)
        for value in values:
            write_value(content, file, where, value)  # raises now rather than in the middle of a lap
        knob = Knob(name, values, file=file, key=where, present=present)
    if all(same_value(value, knob.present) for value in knob.values):
        raise _wrong(text, f"there is nothing to try, {knob.present} is what it has already")
    return knob


def _wrong(text: str, why: str) -> HotlapError:
    return HotlapError(f"--knob {text!r}: {why}.", HINT, EXIT_USAGE)


def _content(file: str) -> str:
    try:
        with open(file, encoding="utf-8", newline="") as source:
            return source.read()
    except (OSError, ValueError) as err:  # also a name that no file can have
        reason = err.strerror if isinstance(err, OSError) else "it is not UTF-8 text"
        reason = "no file can have this name" if isinstance(err, UnicodeEncodeError) else reason
        raise HotlapError(
            f"The configuration file {file} cannot be read: {reason}.", "Check its path.", EXIT_USAGE
        ) from err


def same_value(one: Scalar, other: Scalar) -> bool:
    """Whether two values mean the same to a script that reads them (``32``, ``"32"``, ``32.0``)."""
    if one is None or other is None or isinstance(one, bool) or isinstance(other, bool):
        return one is other
    try:
        return float(one) == float(other)
    except (ValueError, OverflowError):  # a text, or a whole number beyond all floats
        return one == other


def rewritten(command: Sequence[str], moves: Iterable[Move]) -> list[str]:
    """The command with the options that the knobs among ``moves`` set."""
    result = list(command)
    for move in moves:
        if move.is_knob and "option" in move.setting:
            result = write_option(result, move.setting["option"], str(move.setting["value"]))
    return result


def changed_files(moves: Iterable[Move]) -> dict[Path, str]:
    """Whole new texts of the configuration files that the knobs among ``moves`` set values in. Nothing is written."""
    texts: dict[Path, str] = {}
    for move in moves:
        if not move.is_knob or "file" not in move.setting:
            continue
        file, key = move.setting["file"], move.setting["key"]
        path = Path(file).resolve()
        texts[path] = write_value(texts.get(path) or _content(file), file, key, move.setting["value"])
    return texts


def by_hand(moves: Iterable[Move], command: Sequence[str], running: bool = False) -> list[str]:
    """What the user has to set, one sentence for each knob that has another value now.

    ``running``: the command is running already, so that its options cannot be rewritten any more and are told too.
    """
    told = []
    for move in moves:
        if not move.is_knob:
            continue
        value = move.setting["value"]
        if "option" in move.setting:
            option = move.setting["option"]
            if running and not same_value(read_option(command, option), value):
                given = option + str(value) if option.endswith("=") else f"{option} {value}"
                told.append(f"{move.lever} is an option of the command: start the script with {given}")
            continue
        file, key = move.setting["file"], move.setting["key"]
        now = read_value(_content(file), file, key)
        if not same_value(now, value):
            told.append(f"{move.lever} is not set: change {key} in {file} from {now} to {value}")
    return told


def wrong_knob(move: Move) -> str | None:
    """What is wrong with the setting of a knob in a plan, as the end of a sentence; None: nothing."""
    if not re.fullmatch(re.escape(KNOB) + r"[A-Za-z][\w-]*", move.lever):
        return f"its lever is {move.lever!r}, expected {KNOB}NAME"
    keys = set(move.setting)
    if keys not in ({"option", "value"}, {"file", "key", "value"}):
        return f"it holds {', '.join(sorted(keys)) or 'nothing'}; a knob has option and value, or file, key and value"
    for key in keys - {"value"}:
        if not isinstance(move.setting[key], str) or not move.setting[key]:
            return f"{key} is {move.setting[key]!r}, expected text"
    value = move.setting["value"]
    allowed = (str, int, float) if "option" in keys else (str, int, float, bool, type(None))
    if not isinstance(value, allowed) or ("option" in keys and isinstance(value, bool)):
        return f"value is {value!r}, expected " + ("text or a number" if "option" in keys else "a single value")
    return None
