"""Processes that pack parts beside this one: each is handed a part when it asks for one.

Of a process of one thread they are copies (fork), which are there at once, where the source says that a copy may read
it. Otherwise they are started anew (spawn): a copy would hold the locks of threads that it does not have, and OpenMP
would wait for such threads for ever. That takes seconds, in which a small source may be done: nobody waits for a helper
that has no part yet.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from hotlap.pack.job import Planned
from hotlap.records.errors import HotlapError

__all__ = ["PackPart", "pack_together"]

PackPart = Callable[[Planned, Callable[[int], None]], None]
"""Packs a part, and tells now and then how many rows it has done. Sent to the helpers by pickle, however they start:
a source that holds a file open has one of its own in each."""
_KILLED = (
    "A packing process was killed (memory?), or the calling script has no `if __name__ == '__main__':`.",
    "Run the same command again with fewer --processes: finished parts are kept.",
)
_NOT_HERE = "not here"
"""Told by a helper in which the source cannot be read, or is not the same: the others do without it."""
_LOOK_S = 0.05
"""Seconds between two looks at helpers that are still at their last part."""


class _Parts:
    """What is to be packed, and how far all are."""

    def __init__(self, todo: Sequence[Planned]) -> None:
        self.lock = threading.Lock()
        self.left = deque(todo)
        self.rows = 0
        """Done by helpers, and parts of this process."""
        self.failed: BaseException | None = None

    def take(self) -> Planned | None:
        """The next part, for this process. Raises what a helper met."""
        with self.lock:
            if self.failed is not None:
                raise self.failed
            return self.left.popleft() if self.left else None

    def fail(self, err: BaseException) -> None:
        """Nobody begins another part."""
        with self.lock:
            self.failed = self.failed or err
            self.left.clear()


class _Helper:
    """One process, and the thread that talks with it."""

    def __init__(self, context: Any, parts: _Parts, pack_part: bytes) -> None:
        self._parts = parts
        self._has_part = False
        self._is_ended = False
        self._own, theirs = context.Pipe()
        self._process = context.Process(target=_help, args=(theirs, pack_part), name="hotlap-pack", daemon=True)
        self._process.start()
        theirs.close()

    def serve(self) -> None:
        """Hand it parts from now on, in a thread: once all helpers have started, of a process that has none."""
        threading.Thread(target=self._serve, name="hotlap-pack-helper", daemon=True).start()

    @property
    def is_busy(self) -> bool:
        with self._parts.lock:
            return self._has_part

    def _serve(self) -> None:
        parts = self._parts
        try:
            while True:
                said = self._own.recv()
                if isinstance(said, BaseException):
                    parts.fail(said)
                    return
                if said == _NOT_HERE:
                    return
                with parts.lock:
                    if said is not None:
                        parts.rows += said
                        continue
                    part = parts.left.popleft() if parts.left else None
                    self._has_part = part is not None
                self._own.send(part)
                if part is None:
                    return
        except (EOFError, OSError):
            if not self._is_ended:
                parts.fail(HotlapError(*_KILLED))
        finally:
            with parts.lock:
                self._has_part = False

    def end(self) -> None:
        """It has no part any more."""
        self._is_ended = True
        self._process.terminate()
        self._process.join()
        self._own.close()


def _help(pipe: Any, sent: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the packer's to answer, when the part is done
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a copy has its parent's answer to it
    try:
        pack_part: PackPart = pickle.loads(sent)
    except Exception:  # whatever the source's own __setstate__ raises
        pipe.send(_NOT_HERE)
        return
    threading.Thread(target=_end_with_parent, name="hotlap-parent", daemon=True).start()
    while True:
        pipe.send(None)
        part = pipe.recv()
        if part is None:
            return
        told = 0

        def report(rows: int) -> None:
            nonlocal told
            pipe.send(rows - told)
            told = rows

        try:
            pack_part(part, report)
        except Exception as err:
            try:
                pipe.send(err)
            except Exception:  # it cannot be pickled
                pipe.send(HotlapError(f"{type(err).__name__}: {err}"))
            return


def _end_with_parent() -> None:
    """A helper waits for a part from a pipe: a kill -9 of the packer would leave it waiting for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _sent(pack_part: PackPart) -> bytes | None:
    """None where it cannot be."""
    try:
        return pickle.dumps(pack_part)
    except Exception:  # whatever the source's own __reduce__ raises
        return None


def _start_method(may_fork: bool) -> str:
    # Python's threads alone: those of numpy and Arrow are at rest, and their libraries expect a fork
    return "fork" if may_fork and sys.platform == "linux" and threading.active_count() == 1 else "spawn"


def pack_together(todo: Sequence[Planned], processes: int, pack_part: PackPart, report: Callable[[int], None],
                  may_fork: bool = False) -> None:  # fmt: skip
    """Pack all parts in so many processes, this one included. ``report`` hears how many rows are done in all.

    A source that cannot be sent to another process (an open file, a function made on the way), or is another one there,
    is packed by this one.
    Raises what the first failing part raised, when the parts under way are done.
    """
    context = multiprocessing.get_context(_start_method(may_fork))
    parts, sent = _Parts(todo), _sent(pack_part)
    helpers = [_Helper(context, parts, sent) for _ in range(min(processes, len(todo)) - 1)] if sent is not None else []
    try:
        for helper in helpers:
            helper.serve()
        while (part := parts.take()) is not None:
            pack_part(part, lambda rows: report(parts.rows + rows))
            with parts.lock:
                parts.rows += part[2] - part[1]
    except BaseException as err:
        parts.fail(err)
        raise
    finally:
        while any(helper.is_busy for helper in helpers):
            time.sleep(_LOOK_S)
            report(parts.rows)
        for helper in helpers:
            helper.end()
    if parts.failed is not None:
        raise parts.failed
