"""What is to change in one parsed file, by node; and the walk that changes it."""

from __future__ import annotations

import re
from collections import defaultdict
from copy import copy
from typing import TYPE_CHECKING, Any

from hotlap.patch.layout import appended
from hotlap.patch.removal import left_over, settled, unwrapped
from hotlap.patch.source import Source, dotted
from hotlap.records.errors import HotlapError

if TYPE_CHECKING:
    import libcst as cst

__all__ = ["Changes"]


class Changes:
    """Changes by the identity of the node they are made to; :meth:`code` makes them all in one walk."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.keywords: dict[Any, dict[str, Any]] = {}
        self.values: dict[Any, Any] = {}
        """Argument by position: its new value."""
        self.templates: dict[Any, list[str]] = defaultdict(list)
        """Text in place of a node, with ``{call}`` for what it was."""
        self.headers: dict[Any, list[str]] = defaultdict(list)
        self.hoisted: dict[Any, tuple[Any, str]] = {}
        """Statement: the call that is computed before it, and the name it gets."""
        self.before: dict[Any, list[str]] = defaultdict(list)
        self.after: dict[Any, list[str]] = defaultdict(list)
        self.decorators: dict[Any, list[str]] = defaultdict(list)
        self.removed: set[Any] = set()
        self.gone: set[Any] = set()
        """Place holders of removed statements, until the block around them is done."""

    def kept(self) -> dict[str, Any]:
        """What is recorded so far, for :meth:`put_back`."""
        return {
            name: {k: copy(v) for k, v in held.items()} if isinstance(held, dict) else copy(held)
            for name, held in vars(self).items()
            if isinstance(held, dict | set)
        }

    def put_back(self, kept: dict[str, Any]) -> None:
        """Forget what was recorded since."""
        for name, held in kept.items():
            own = getattr(self, name)
            own.clear()
            own.update(held)

    def set_argument(self, call: cst.Call, name: str, value: Any, at: cst.BaseExpression | None) -> None:
        """Give a call an argument; ``at`` is its present value where that is given by its place.

        Two values for one argument are a conflict.
        """
        held: dict[Any, Any] = self.values if at is not None else self.keywords.setdefault(call, {})
        key = name if at is None else at
        if key in held and held[key] != value:
            line = self.source.place(call)[0]
            raise HotlapError(
                f"{self.source.name}:{line}: one move sets {name}={held[key]!r}, another {name}={value!r}.",
                "Remove one of the two from the plan.",
            )
        held[key] = value

    def code(self) -> str:
        """The source with every change made."""
        import libcst as cst

        changes = self

        class Walk(cst.CSTTransformer):
            def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> Any:
                return changes._call(original_node, updated_node)

            def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:
                updated = updated_node
                for template in changes.templates.get(original_node, ()):
                    updated = updated.with_changes(iter=changes._filled(template, updated.iter))
                return changes._beside(original_node, [updated])

            def leave_AugAssign(self, original_node: cst.AugAssign, updated_node: cst.AugAssign) -> Any:
                updated = updated_node
                for template in changes.templates.get(original_node, ()):
                    updated = updated.with_changes(value=changes._filled(template, updated.value))
                return updated

            def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Any:
                if original_node in changes.removed:
                    return changes._gone(left_over(updated_node.leading_lines))
                return changes._beside(original_node, [updated_node])

            def leave_While(self, original_node: cst.While, updated_node: cst.While) -> Any:
                return changes._beside(original_node, [updated_node])

            def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
                if original_node not in changes.removed:
                    return updated_node
                inner, end = unwrapped(updated_node)
                return cst.FlattenSentinel([*inner, changes._gone(end)])

            def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> Any:
                return settled(updated_node, changes.gone)

            def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> Any:
                return settled(updated_node, changes.gone)

            def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> Any:
                added = [
                    cst.Decorator(cst.parse_expression(text.removeprefix("@")))
                    for text in changes.decorators.get(original_node, ())
                ]
                return (
                    updated_node.with_changes(decorators=[*updated_node.decorators, *added]) if added else updated_node
                )

            def leave_SimpleStatementLine(
                self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
            ) -> Any:
                return changes._line(original_node, updated_node)

        return self.source.module.visit(Walk()).code

    def _call(self, original: cst.Call, updated: cst.Call) -> Any:
        import libcst as cst

        args = [
            now.with_changes(value=_written(self.values[was.value])) if was.value in self.values else now
            for was, now in zip(original.args, updated.args, strict=True)
        ]
        updated = updated.with_changes(args=args)
        result: cst.BaseExpression = updated
        if original in self.keywords:
            result = self._with_keywords(original, updated, self.keywords[original])
        for template in self.templates.get(original, ()):
            result = self._filled(template, result)
        for statement, (call, name) in self.hoisted.items():
            if call is original:
                self.hoisted[statement] = (result, name)  # the call as it will be computed before
                return cst.Name(name)
        return result

    def _with_keywords(self, original: cst.Call, call: cst.Call, keywords: dict[str, Any]) -> cst.Call:
        import libcst as cst

        args, added = list(call.args), []
        for name, value in keywords.items():
            text = _written(value)
            at = [i for i, arg in enumerate(args) if arg.keyword is not None and arg.keyword.value == name]
            if at:
                args[at[0]] = args[at[0]].with_changes(value=text)
            else:
                equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
                added.append(cst.Arg(text, keyword=cst.Name(name), equal=equal))
        if not added:
            return call.with_changes(args=args)
        return appended(self.source, original, call, args, added)

    def _line(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> Any:
        import libcst as cst

        if original in self.removed:
            return self._gone(left_over(updated.leading_lines))
        body: list[Any] = [updated]
        if original in self.hoisted:
            call, name = self.hoisted[original]
            first = self._parse(f"{name} = 0")
            assert isinstance(first, cst.SimpleStatementLine)
            assign = first.body[0].with_changes(value=call)
            first = first.with_changes(body=[assign], leading_lines=updated.leading_lines)
            body = [first, updated.with_changes(leading_lines=[])]
        for header in self.headers.get(original, ()):
            block = self._parse(f"{header} pass")
            assert isinstance(block, cst.With)
            lines = body[0].leading_lines
            inner = cst.IndentedBlock([body[0].with_changes(leading_lines=[])])
            body[0] = block.with_changes(body=inner, leading_lines=lines)
        return self._beside(original, body)

    def _gone(self, holder: Any) -> Any:
        self.gone.add(holder)
        return holder

    def _parse(self, text: str) -> Any:
        import libcst as cst

        return cst.parse_statement(text, self.source.module.config_for_parsing)

    def _beside(self, original: Any, body: list[Any]) -> Any:
        """The statement with what comes before and after it."""
        import libcst as cst

        first: list[Any] = [self._parse(text) for text in self.before.get(original, ())]
        if first:
            first[0] = first[0].with_changes(leading_lines=body[0].leading_lines)
            body[0] = body[0].with_changes(leading_lines=[])
        last = [self._parse(text) for text in self.after.get(original, ())]
        every = [*first, *body, *last]
        return cst.FlattenSentinel(every) if len(every) > 1 else every[0]

    def _filled(self, template: str, node: cst.BaseExpression) -> Any:
        """The template's expression with the node's own text in it."""
        import libcst as cst

        module = self.source.module
        own = module.code_for_node(node)
        held = {"call": own, "iterable": own, "value": own}
        if isinstance(node, cst.Call):
            bare = node.with_changes(func=cst.Name("f"), lpar=[], rpar=[])
            inner = module.code_for_node(bare).strip()[1:].strip()
            held |= {"function": dotted(node.func) or "", "arguments": inner[1:-1]}
        # In one go: the node's own text may hold such a word in braces.
        text = re.sub(r"\{(\w+)\}", lambda found: held.get(found[1], found[0]), template)
        return cst.parse_expression(text, module.config_for_parsing)


def _written(value: Any) -> cst.BaseExpression:
    """A text is an expression already."""
    import libcst as cst

    return cst.parse_expression(value if isinstance(value, str) else repr(value))
