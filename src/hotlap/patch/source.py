"""One source file, parsed so that every comment and blank is kept: places of nodes, statements, functions, loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from hotlap.records.errors import HotlapError

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["Source", "Unwritable", "dotted", "load_libcst", "root_name"]


class Unwritable(Exception):
    """This edit cannot be written into this source; the reason is one sentence for a person."""


def load_libcst() -> Any:
    """The library, or HotlapError with what to install."""
    try:
        import libcst
        import libcst.metadata
    except ImportError as err:
        raise HotlapError("Patches need the library libcst.", "pip install 'hotlap[patch]'") from err
    return libcst


def dotted(node: cst.CSTNode) -> str | None:
    """``self.model`` of a chain of names, else None."""
    import libcst as cst

    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr.value}" if head is not None else None
    return None


def root_name(name: str) -> str:
    """``self`` of ``self.model``."""
    return name.partition(".")[0]


class Source:
    """A parsed file. Nodes are compared by identity; nothing is changed here."""

    def __init__(self, name: str, data: bytes, beside: Mapping[str, bytes] | None = None) -> None:
        library = load_libcst()
        self.name = name
        self._beside = dict(beside or {})
        self.bom = data[:3] if data.startswith(b"\xef\xbb\xbf") else b""
        try:
            module = library.parse_module(data[len(self.bom) :])
        except (library.ParserSyntaxError, UnicodeDecodeError, LookupError) as err:
            line = getattr(err, "raw_line", 1)
            raise HotlapError(f"{name}:{line}: this is not Python that can be read.", exit_code=2) from err
        wrapper = library.metadata.MetadataWrapper(module, unsafe_skip_copy=True)
        self.module: cst.Module = wrapper.module
        self._at = wrapper.resolve(library.metadata.PositionProvider)
        self._parent = wrapper.resolve(library.metadata.ParentNodeProvider)
        self.nodes: list[cst.CSTNode] = list(self._at)
        self._sorted: dict[tuple[type[Any], ...], list[Any]] = {}
        self.lines = re.split("\r\n|\r|\n", self.module.code)
        """As Python counts them: a form feed ends none."""

    @cached_property
    def others(self) -> list[Source]:
        """The other files of the run that are known. Unwritable where one cannot be read."""
        try:
            return [Source(name, data) for name, data in self._beside.items()]
        except HotlapError as err:
            raise Unwritable(f"a file that is run beside it is not understood: {err.what.rstrip('.')}") from err

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """First and last line."""
        at = self._at[node]
        return at.start.line, at.end.line

    def place(self, node: cst.CSTNode) -> tuple[int, int]:
        """Line and column of its first character."""
        at = self._at[node]
        return at.start.line, at.start.column

    def parents(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """From the nearest outwards."""
        here: cst.CSTNode | None = self._parent.get(node)
        while here is not None:
            yield here
            here = self._parent.get(here)

    def code(self, node: cst.CSTNode) -> str:
        """Its text."""
        return self.module.code_for_node(node)

    def of_type(self, *kinds: type[Any]) -> list[Any]:
        """All nodes of these types, by place."""
        if kinds not in self._sorted:
            self._sorted[kinds] = sorted((n for n in self.nodes if isinstance(n, kinds)), key=self.place)
        return self._sorted[kinds]

    def statement(self, line: int) -> cst.CSTNode:
        """The innermost statement on ``line``. Unwritable where there is none."""
        import libcst as cst

        simple = [n for n in self.of_type(cst.SimpleStatementLine) if self._covers(n, line)]
        if simple:
            return cast("cst.CSTNode", simple[-1])
        compound = [n for n in self.of_type(cst.BaseCompoundStatement) if self._header_covers(n, line)]
        if compound:
            return cast("cst.CSTNode", compound[-1])
        raise Unwritable(f"there is no statement on line {line}")

    def _covers(self, node: cst.CSTNode, line: int) -> bool:
        first, last = self.span(node)
        return first <= line <= last

    def _header_covers(self, node: Any, line: int) -> bool:
        first, last = self.span(node)[0], self.span(node.body)[0]
        return first <= line <= max(first, last)

    def statement_of(self, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
        """The simple statement (a line of its own) that holds the node; None inside the head of a compound one."""
        import libcst as cst

        for parent in self.parents(node):
            if isinstance(parent, cst.SimpleStatementLine):
                return parent
            if isinstance(parent, cst.BaseCompoundStatement | cst.SimpleStatementSuite):
                return None
        return None

    def inside(self, node: cst.CSTNode, *kinds: type[Any]) -> list[Any]:
        """Nodes of these types within ``node``, itself included."""
        return [n for n in self.of_type(*kinds) if n is node or any(p is node for p in self.parents(n))]

    def calls(self, node: cst.CSTNode) -> list[cst.Call]:
        """Calls within, by place (outer before inner where both start there). Of a compound statement: its head's."""
        import libcst as cst

        parts = (
            ("body", "orelse", "finalbody", "handlers", "cases") if isinstance(node, cst.BaseCompoundStatement) else ()
        )
        left: list[Any] = []
        for part in (getattr(node, name, None) for name in parts):
            left += part if isinstance(part, list | tuple) else [part]
        found: list[cst.Call] = self.inside(node, cst.Call)
        return [c for c in found if not any(p is one for p in self.parents(c) for one in left)]

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function around the node (the node's own, if it is one)."""
        import libcst as cst

        for here in (node, *self.parents(node)):
            if isinstance(here, cst.FunctionDef):
                return here
        return None

    def loops(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """``for`` and ``while`` around the node within its function, innermost first; itself, if it is one."""
        import libcst as cst

        found: list[cst.CSTNode] = []
        for here in (node, *self.parents(node)):
            if isinstance(here, cst.FunctionDef | cst.ClassDef):
                break
            if isinstance(here, cst.For | cst.While):
                found.append(here)
        return found
