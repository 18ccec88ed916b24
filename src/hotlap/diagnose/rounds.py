"""How often the user's lines were run in one forward, as counted in a step of the warm-up."""

from __future__ import annotations

from dataclasses import dataclass

from hotlap.diagnose.view import View

__all__ = ["Counted", "Line", "counted_lines", "rounds"]

Line = tuple[str, int]


@dataclass(frozen=True)
class Counted:
    """Calls per forward of one line of the user's."""

    function: str
    calls: float
    rounds: float
    """Of these, calls in one run of the function that the line is in."""


def counted_lines(view: View) -> dict[Line, Counted]:
    """The busiest lines, and those that call modules from outside of any."""
    found: dict[Line, Counted] = {}
    for row in view.setting_rows("step_calls"):
        for told in row.value.get("lines") or []:
            frame = view.timeline.frame.get(int(told[0])) if len(told) > 1 else None
            if frame is not None:
                line = Counted(frame.func, float(told[1]), float(told[-1]))
                known = found.get((frame.file, frame.line))
                if known is None or known.rounds < line.rounds:
                    found[frame.file, frame.line] = line
    return found


def rounds(view: View) -> dict[Line, float]:
    """Rounds by line."""
    return {line: counted.rounds for line, counted in counted_lines(view).items()}
