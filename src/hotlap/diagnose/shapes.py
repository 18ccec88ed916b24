"""Seconds per step on the lines of a shape of source: stacks say what the shape costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hotlap.diagnose.stacks import Sampled, StackBook, merge
from hotlap.diagnose.view import View
from hotlap.records.code_shape import CodeShape
from hotlap.records.findings import Where

__all__ = ["OnLines", "costly"]


@dataclass(frozen=True)
class OnLines:
    """A shape, and what the samples on its lines come to."""

    shape: CodeShape
    seconds: float
    """Per step, over the phases asked for."""
    forward_share: float
    """Share of the forward's samples, 0..1."""
    book: StackBook

    def where(self) -> Where:
        """The place to name."""
        return Where(self.shape.file, self.shape.line, self.shape.function, self.shape.text)


def costly(view: View, kind: str, phases: Iterable[str]) -> list[OnLines]:
    """Shapes of a kind whose lines were seen in the stacks of these phases, most seconds first."""
    found = []
    for shape in (s for s in view.timeline.shapes if s.kind == kind):

        def on_lines(sample: Sampled, shape: CodeShape = shape) -> bool:
            return any(f.file == shape.file and f.line in shape.lines for f in sample.user)

        seconds, forward_share, books = 0.0, 0.0, []
        for phase in phases:
            book = view.stacks.phase(phase)
            part = book.where(on_lines)
            share = part.total() / max(1, book.total())
            seconds += view.seconds(phase) * share
            forward_share = share if phase == "forward" else forward_share
            books.append(part)
        if seconds > 0.0:
            book = merge(books, view.timeline.source, view.timeline.loops)
            found.append(OnLines(shape, seconds, forward_share, book))
    return sorted(found, key=lambda on: -on.seconds)
