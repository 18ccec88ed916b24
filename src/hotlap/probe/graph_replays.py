"""Steps that a script has captured in a CUDA graph: a replay runs no Python of the optimizer's, and is a step."""

from __future__ import annotations

import functools
import weakref
from threading import get_ident
from typing import Any

from hotlap.probe.context import Context

__all__ = ["install"]

LONGEST_WAIT_S = 1.0
"""How long a capture may wait for a thread that is asking the device, which takes milliseconds."""


def install(ctx: Context) -> list[Any]:
    """Watch which graph is being captured while an update is made, and its replays. Returns a list that holds the graph
    as long as it is captured: nothing may be asked of the device then, from any thread (one that is asking is waited
    for).

    Graphs of a forward or a backward alone (``make_graphed_callables``, torch.compile's) hold no update, and their
    replays are no steps.
    """
    rec, graphs = ctx.rec, ctx.torch.cuda.CUDAGraph
    begin, end, replay = graphs.capture_begin, graphs.capture_end, graphs.replay
    capturing: list[Any] = []
    whole: weakref.WeakSet[Any] = weakref.WeakSet()

    @functools.wraps(begin)
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        asking, free = rec.asking, rec.asking.acquire(timeout=LONGEST_WAIT_S)
        capturing[:] = [self]
        if free:
            asking.release()
        try:
            return begin(self, *args, **kwargs)
        except BaseException:  # nothing is captured then, and nobody calls capture_end
            capturing.clear()
            raise

    @functools.wraps(end)
    def capture_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return end(self, *args, **kwargs)
        finally:
            capturing.clear()  # not sooner: until here the device may not be asked

    @functools.wraps(replay)
    def replayed(self: Any) -> Any:
        result = replay(self)
        if self in whole and get_ident() == rec.thread:
            try:
                rec.sign_of_training()
                rec.end_step()
            except Exception as err:
                ctx.failed("graph_replays", err)
        return result

    def updated(index: int) -> None:
        whole.update(capturing)

    rec.on_step_end.append(updated)
    for name, made in (("capture_begin", capture_begin), ("capture_end", capture_end), ("replay", replayed)):
        ctx.undo.replace(graphs, name, made)
    return capturing
