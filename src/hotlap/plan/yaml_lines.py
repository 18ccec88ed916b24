"""Where in a YAML text a path like ``$.moves[1].setting`` stands."""

from __future__ import annotations

import re

import yaml

__all__ = ["line_of"]

_PATH = re.compile(r"^\$((?:\.[A-Za-z_][\w-]*|\[\d+\])*)(?: has an unknown key '([^']*)')?")
_PART = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]")


def line_of(text: str, message: str) -> int | None:
    """Line (from 1) of the path that ``message`` starts with, as near as the text has it; None when it has no path."""
    match = _PATH.match(message)
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if match is None or node is None:
        return None
    parts = [name or int(index) for name, index in _PART.findall(match[1])]
    if match[2] is not None:
        parts.append(match[2])
    line: int = node.start_mark.line
    for part in parts:
        found = _child(node, part)
        if found is None:
            break
        line, node = found
    return line + 1


def _child(node: yaml.Node, part: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == part:
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line, node.value[part]
    return None
