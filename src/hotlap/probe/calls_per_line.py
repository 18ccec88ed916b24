"""Counts, in one step of the warm-up, the calls that each of the user's lines makes in the forwards, and the forwards
that each line makes: loops of small work. Of lines that call nothing it counts how often they are run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from hotlap.probe.context import Context
from hotlap.probe.forward import Forwards
from hotlap.probe.model_facts import is_compiled
from hotlap.records.rows import Setting

__all__ = ["AT_STEP", "install"]

AT_STEP = 4
"""The step after which one step is counted; one of :data:`~hotlap.probe.recorder.LOOKS`."""
LINES = 40
"""Lines told, the busiest first; besides the lines that call a module from outside of any."""
MOST_RUNS = 300_000
"""Lines run in one forward, after which they are counted no more: a second or so, once."""
MOST = 256
"""Forwards of the step that are looked into: as many rounds tell a loop, and a profiled call takes twice its time."""


class _Counts:
    """Calls by place until the next backward. A place is one call in the source: a line may have several."""

    def __init__(self) -> None:
        self.calls: dict[tuple[int, int], int] = {}
        self.begun: dict[int, int] = {}
        """How often each function was begun."""
        self.runs: dict[tuple[int, int], tuple[int, int]] = {}
        """By code and line: the number of the frame, and how often it was run."""
        self.outside: set[tuple[int, int]] = set()
        """Places that a forward was called from."""

    def rounds(self, place: tuple[int, int]) -> float:
        """Calls in one run of the function that the place is in: those of its own loops."""
        return self.calls[place] / max(1, self.begun.get(place[0], 1))


class _Counter:
    """Stands around the outermost calls of one step."""

    def __init__(self, ctx: Context, forwards: Forwards) -> None:
        self.ctx = ctx
        self.rec = ctx.rec
        self.forwards = forwards
        self.looked = 0
        self.at: tuple[int, int] | None = None
        """Step and backwards in it: what is called until the next backward is one training forward."""
        self.counts = _Counts()
        self.numbers: dict[tuple[int, int], int] = {}
        self.most: dict[int, tuple[int, float, bool]] = {}
        """By number of the frame: calls, those of one run of the function, and whether a forward is called there."""
        self.compiled: dict[int, tuple[Any, bool]] = {}

    def around(self, call: Callable[[], Any], module: Any) -> Any:
        """One outermost call in training; the first of the next step ends the counting."""
        rec = self.rec
        at = (rec.step_index, rec.micro)
        if self.at is not None and at != self.at:
            self._told()
            if at[0] != self.at[0]:
                self.forwards.around = None
                self._emit()
                return call()
        self.at = at
        known = self.compiled.get(id(module))
        if known is None:  # with the module itself, so that its id stays its own
            known = self.compiled[id(module)] = (module, is_compiled(self.ctx.torch, module))
        self._called_from(sys._getframe(1))
        self.looked += 1
        if known[1] or self.looked > MOST or sys.getprofile() is not None or sys.gettrace() is not None:
            return call()
        return self._look_into(call)

    def _called_from(self, frame: FrameType | None) -> None:
        counts = self.counts
        caller = self.rec.frames.user_frame(frame)
        if caller is not None:
            place = (id(caller.f_code), caller.f_lasti)
            counts.calls[place] = counts.calls.get(place, 0) + 1
            counts.outside.add(place)
            if place not in self.numbers:
                self.numbers[place] = self.rec.frames.number(caller)

    def _look_into(self, call: Callable[[], Any]) -> Any:
        frames, numbers = self.rec.frames, self.numbers
        calls, begun = self.counts.calls, self.counts.begun
        in_c: list[int] = []  # by their ids: a frame that is kept keeps the script's objects, its loader's workers too

        def on_call(frame: FrameType, event: str, arg: Any) -> None:
            if event == "call":
                caller = frame.f_back
                code: CodeType = frame.f_code
                if code.co_flags & inspect.CO_GENERATOR:
                    return  # it goes on for its next item
                if frames.kind(code) == 1:
                    begun[id(code)] = begun.get(id(code), 0) + 1
                if in_c and in_c[-1] == id(caller):
                    return  # C calls back, as torch does where a mode of functions is on: one call, not two
            elif event == "c_call":
                caller = frame
                in_c.append(id(frame))
            else:
                if event != "return" and in_c:
                    in_c.pop()
                return
            if caller is None or frames.kind(caller.f_code) != 1:
                return
            place = (id(caller.f_code), caller.f_lasti)  # the table of frames keeps the code alive
            calls[place] = calls.get(place, 0) + 1
            if place not in numbers:
                numbers[place] = frames.number(caller)

        trace = self._trace()
        sys.setprofile(on_call)
        sys.settrace(trace)
        try:
            return call()
        finally:
            if sys.gettrace() is trace:
                sys.settrace(None)
            if sys.getprofile() is on_call:
                sys.setprofile(None)

    def _trace(self) -> Callable[[FrameType, str, Any], Any]:
        frames, runs = self.rec.frames, self.counts.runs
        left = MOST_RUNS

        def on_line(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal left
            if event == "line":
                place = (id(frame.f_code), frame.f_lineno)
                number, n = runs.get(place) or (frames.number(frame), 0)
                runs[place] = (number, n + 1)
                left -= 1
                if left < 0:
                    frame.f_trace_lines = False
            return on_line

        def on_function(frame: FrameType, event: str, arg: Any) -> Any:
            return on_line if left > 0 and frames.kind(frame.f_code) == 1 else None

        return on_function

    def _told(self) -> None:
        """A backward came: keep of each line what is most."""
        counts, self.counts = self.counts, _Counts()
        lines: dict[int, tuple[int, float, bool]] = {}
        for place, calls in counts.calls.items():
            all_calls, rounds, outside = lines.get(self.numbers[place], (0, 0.0, False))
            rounds = max(rounds, counts.rounds(place))
            lines[self.numbers[place]] = (all_calls + calls, rounds, outside or place in counts.outside)
        for (code, _), (number, n) in counts.runs.items():
            rounds = n / max(1, counts.begun.get(code, 1))
            if number not in lines and rounds > 1.0:
                lines[number] = (n, rounds, False)
        for number, (calls, rounds, outside) in lines.items():
            most = self.most.get(number, (0, 0.0, False))
            self.most[number] = (max(most[0], calls), max(most[1], rounds), most[2] or outside)

    def _emit(self) -> None:
        busiest = sorted(self.most.items(), key=lambda item: -item[1][0])
        told = [*busiest[:LINES], *[item for item in busiest[LINES:] if item[1][2]][:LINES]]
        lines = [[number, calls, round(rounds, 1)] for number, (calls, rounds, _) in told]
        self.rec.emit(Setting("step_calls", {"lines": lines}))


def install(ctx: Context, forwards: Forwards) -> None:
    """Count in the step after :data:`AT_STEP`; calls are not looked into where the script itself profiles or traces."""

    def after_step(index: int) -> None:
        if index == AT_STEP:
            forwards.around = _Counter(ctx, forwards).around

    ctx.rec.on_look.append(after_step)
