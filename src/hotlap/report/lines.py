"""Lines of terminal output that keep to the width: padded, wrapped, ruled off."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hotlap.report import words

__all__ = ["Lines", "folded", "pad", "rule", "spread", "wrapped"]

WIDEST = 120
NARROWEST = 60


class Lines:
    """Renders by the width that the console has, at most :data:`WIDEST`."""

    def __init__(self, build: Callable[[int], Iterable[Text]]) -> None:
        self._build = build

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(WIDEST, max(NARROWEST, options.max_width))
        for line in self._build(width):
            line.rstrip()
            yield line


def pad(text: str, width: int, right: bool = False) -> str:
    """Pad by display cells (CJK and emoji are two wide) and cut with an ellipsis."""
    if width <= 0:
        return ""
    text = words.clean(text)
    if cell_len(text) > width:
        while text and cell_len(text) > width - 1:
            text = text[:-1]
        text += "…"
    gap = " " * (width - cell_len(text))
    return gap + text if right else text + gap


def spread(left: str, right: str, width: int) -> list[Text]:
    """Bold text on the left and facts on the right: of one line, or of two where both do not fit."""
    room = width - cell_len(right) - 3
    if cell_len(left) > room:
        return [Text(f" {pad(left, width - 1)}", "bold"), Text(f" {pad(right, width - 1, right=True)}")]
    return [Text(f" {pad(left, room)}  ", "bold").append(right, "not bold")]


def wrapped(text: str, width: int, indent: str = " ", style: str = "") -> list[Text]:
    """A text folded at blanks, every line indented."""
    body = Text(" ".join(words.clean(text).split()), style)
    lines = body.wrap(Console(width=width), max(20, width - len(indent)), justify="left")
    return [Text(indent).append_text(line) for line in lines]


def rule(title: str, width: int, right: str = "") -> Text:
    """A section's head: its title, and what stands in the columns below on the right."""
    left = f" ── {title} "
    right = f" {right} " if right else ""
    return Text(left + "─" * max(2, width - cell_len(left) - cell_len(right)) + right, "dim")


def folded(label: str, text: str, width: int, style: str) -> list[Text]:
    """What is there to be copied is never cut, only folded."""
    text, room = words.clean(text), width - cell_len(label)
    body = Text(text, style).wrap(Console(width=width), room, overflow="fold")
    return [Text(label if n == 0 else " " * cell_len(label)).append_text(line) for n, line in enumerate(body)]
