"""Laying out text for a terminal: columns by display cells, rules, wrapping; as wide as the console, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hotlap.report import words

__all__ = ["NARROWEST", "WIDEST", "Lines", "folded", "pad", "rule", "spread", "wrapped"]

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
    """Two texts at either end of a line; one below the other where they do not fit."""
    room = width - cell_len(right) - 3
    if cell_len(left) > room:
        below = [Text(f" {pad(right, width - 1, right=True)}")] if cell_len(right) < width else wrapped(right, width)
        return [Text(f" {pad(left, width - 1)}", "bold"), *below]
    return [Text(f" {pad(left, room)}  ", "bold").append(right, "not bold")]


def wrapped(text: str, width: int, indent: str = " ", style: str = "") -> list[Text]:
    """Text wrapped to the width."""
    body = Text(" ".join(words.clean(text).split()), style)
    lines = body.wrap(Console(width=width), max(20, width - len(indent)), justify="left")
    return [Text(indent).append_text(line) for line in lines]


def rule(title: str, width: int, right: str = "") -> Text:
    """A line with a title, and column heads at its right end."""
    left = f" ── {title} "
    right = f" {right} " if right else ""
    return Text(left + "─" * max(2, width - cell_len(left) - cell_len(right)) + right, "dim")


def folded(label: str, text: str, width: int, style: str) -> list[Text]:
    """What is there to be copied is never cut, only folded."""
    text, room = words.clean(text), width - cell_len(label)
    body = Text(text, style).wrap(Console(width=width), room, overflow="fold")
    return [Text(label if n == 0 else " " * cell_len(label)).append_text(line) for n, line in enumerate(body)]
