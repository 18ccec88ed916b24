"""Plan files: YAML that a person can read and edit, read strictly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from hotlap.lever.registry import lever, levers
from hotlap.plan.knobs import wrong_knob
from hotlap.plan.plain_yaml import read_plain
from hotlap.plan.yaml_lines import line_of
from hotlap.records.codec import check_schema, decode
from hotlap.records.errors import EXIT_USAGE, HotlapError, RecordError
from hotlap.records.machine import Machine
from hotlap.records.plan import SCHEMA, Move, Plan

__all__ = ["dump_plan", "load_plan", "load_valid_plan", "parse_plan", "validate"]


_KNOB_TITLE = "The script's own setting: `hotlap run` gives options, a file is yours to change."


def load_plan(path: Path) -> Plan:
    """Read a plan file. Raises RecordError that names file, line and path of what is wrong; HotlapError: unreadable.

    Lever ids and settings are not looked at here: :func:`load_valid_plan` checks them against a machine.
    """
    return parse_plan(_text(path), str(path))


def load_valid_plan(path: Path, machine: Machine) -> Plan:
    """Read a plan file whose levers and settings fit ``machine``; errors name file, line and path."""
    text = _text(path)
    plan = parse_plan(text, str(path))
    try:
        validate(plan, machine)
    except HotlapError as err:
        raise HotlapError(_place(err.what, text, str(path)), err.hint, err.exit_code) from err
    return plan


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "it is not UTF-8 text"
        raise HotlapError(
            f"Cannot read the plan {path}: {reason}.", "`hotlap speedup` writes one.", EXIT_USAGE
        ) from err


def parse_plan(text: str, name: str = "plan") -> Plan:
    """Parse the text of a plan; ``name`` is what errors call it."""
    try:
        data = read_plain(text)
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        place = f"{name}:{mark.line + 1}" if mark is not None else name
        raise RecordError(f"{place} is not valid YAML: {getattr(err, 'problem', None) or err}.") from err
    if not isinstance(data, dict):
        raise RecordError(f"{name} is not a plan: it holds no keys.", f"Its first line is `schema: {SCHEMA}`.")
    check_schema(data, SCHEMA, name)
    try:
        plan: Plan = decode(Plan, data, "$")
    except RecordError as err:
        raise RecordError(_place(err.what, text, name), err.hint) from err
    return plan


def _place(what: str, text: str, name: str) -> str:
    """The same words with file and line in front."""
    line = line_of(text, what)
    return f"{name}:{line}: {what}" if line else f"{name}: {what}"


def validate(plan: Plan, machine: Machine, at: str = "$") -> None:
    """Check each move against its lever and this machine. Raises HotlapError that names ``$.moves[i]``.

    ``at``: where the plan stands in its document.
    """
    known = levers()
    for index, move in enumerate(plan.moves):
        here = f"{at}.moves[{index}]"
        if move.is_knob:
            _validate_knob(move, here, plan.moves[:index])
            continue
        if move.lever not in known:
            try:
                lever(move.lever)
            except HotlapError as err:
                raise HotlapError(f"{here}.lever is {move.lever!r}: {err.what}", err.hint, EXIT_USAGE) from err
        found = known[move.lever]
        wrong = found.check(move.setting, machine)
        if wrong is not None:
            joint = "." if re.match(r"[a-z_]+ is ", wrong) else ": "
            raise HotlapError(f"{here}.setting{joint}{wrong}", f"`hotlap levers {move.lever}` explains it.", EXIT_USAGE)
        if move.preserves != found.PRESERVES:
            raise HotlapError(f"{here}.preserves is {move.preserves!r}; {move.lever} preserves {found.PRESERVES!r}.",
                              exit_code=EXIT_USAGE)  # fmt: skip
        for earlier in plan.moves[:index]:
            if earlier.lever == move.lever:
                raise HotlapError(f"{here}.lever is {move.lever!r}, which stands in the plan twice.",
                                  "Keep one of the two.", EXIT_USAGE)  # fmt: skip
            theirs = () if earlier.is_knob else known[earlier.lever].CONFLICTS
            if earlier.lever in found.CONFLICTS or move.lever in theirs:
                raise HotlapError(f"{here}.lever is {move.lever!r}, which excludes {earlier.lever!r}.",
                                  "Remove one of the two.", EXIT_USAGE)  # fmt: skip


def _validate_knob(move: Move, here: str, earlier: Sequence[Move]) -> None:
    wrong = wrong_knob(move)
    if wrong is not None:
        raise HotlapError(f"{here}.setting: {wrong}.", "`--knob` of `hotlap speedup` writes such moves.", EXIT_USAGE)
    if move.preserves != "goal":
        raise HotlapError(f"{here}.preserves is {move.preserves!r}; a knob preserves 'goal'.", exit_code=EXIT_USAGE)
    if any(m.lever == move.lever for m in earlier):
        raise HotlapError(f"{here}.lever is {move.lever!r}, which stands in the plan twice.", "Keep one of the two.",
                          EXIT_USAGE)  # fmt: skip


def dump_plan(plan: Plan) -> str:
    """The plan as YAML with a comment for each move. ``parse_plan(dump_plan(p)) == p``."""
    lines = ["# A plan by hotlap. Apply it:  hotlap run --plan THIS-FILE -- python train.py", f"schema: {plan.schema}"]
    for key in ("script", "machine", "torch", "created", "speedup", "low", "high"):
        value = getattr(plan, key)
        if value not in ("", None):
            lines.append(_flow({key: value}))
    lines.append("moves:" if plan.moves else "moves: []")
    known = levers()
    for move in plan.moves:
        lines += _move_lines(
            move,
            (known[move.lever].__doc__ or "").strip().split("\n")[0]
            if move.lever in known
            else _KNOB_TITLE
            if move.is_knob
            else "",
        )
    return "\n".join(lines) + "\n"


def _move_lines(move: Move, title: str) -> list[str]:
    lines = [f"  # {title}"] if title else []
    lines.append(f"  - {_flow({'lever': move.lever})}")
    setting = yaml.safe_dump(move.setting, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True)
    lines.append(f"    setting: {setting.strip()}")
    lines.append(f"    preserves: {move.preserves}")
    for key in ("gain", "low", "high"):
        value: Any = getattr(move, key)
        if value is not None:
            lines.append(f"    {_flow({key: value})}")
    return lines


def _flow(pair: dict[str, Any]) -> str:
    return yaml.safe_dump(pair, default_flow_style=False, width=10_000, allow_unicode=True).strip()
