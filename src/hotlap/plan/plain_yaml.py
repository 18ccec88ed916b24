"""YAML as a person writes a plan: values and nothing else, and one kind of error for all that is wrong with it.

PyYAML lets ValueError, KeyError, IndexError and others escape where a value is not what it looks like
(``2026-13-01``, ``!!int ""``), and RecursionError where brackets nest deeply. An alias makes a few lines stand for
more values than a machine can hold (``&a [*b, *b]``); a plan needs none.
"""

from __future__ import annotations

from typing import Any

import yaml

__all__ = ["read_plain"]


class _Plain(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem="an alias (*name) stands there; write the value itself", problem_mark=mark
            )
        node: yaml.Node | None = super().compose_node(parent, index)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as err:
            problem = f"{str(node.value)[:60]!r} is not what it looks like ({err})"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from err


def read_plain(text: str) -> Any:
    """The document in ``text``. Raises yaml.YAMLError, whatever is wrong with it."""
    try:
        return yaml.load(text, Loader=_Plain)
    except RecursionError as err:
        raise yaml.YAMLError("it nests too deeply") from err
