"""A thread that draws from an iterator ahead of its reader, in order."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from hotlap.lever.batch_memory import BatchMemory

__all__ = ["FetchAhead"]

_DATA, _ERROR, _END = 0, 1, 2
_RUNNING: weakref.WeakSet[FetchAhead] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """A thread inside torch when the interpreter goes away is torn out of C++ code, which aborts the process."""
    for ahead in list(_RUNNING):
        ahead.stop()


class FetchAhead:
    """The thread and its queue. The loop holds :meth:`outer`; when that is dropped (``break``), the thread ends.

    The thread starts behind the first batch, which is drawn where it is asked for: nothing waits longer for it, an
    iterator that is never read draws nothing, and what proves itself by its first calls can do so while nothing else
    draws (a thread's draws and the model's share one random state).

    Where batches may lie in memory that is used again, as many as could be under way at once are drawn so; the thread
    starts only if none of them lies where another does. ``told`` is called as soon as that is known; ``apart``: it is
    known to be so.
    """

    def __init__(
        self,
        iterator: Iterator[Any],
        depth: int,
        told: Callable[[bool], None] = lambda apart: None,
        apart: bool | None = None,
    ) -> None:
        self._iterator = iterator
        self._told = told
        self._apart = apart
        self._memory: BatchMemory | None = BatchMemory(depth + 2)  # the one in use, the queue's, the thread's
        self._queue: queue.Queue[tuple[int, Any]] = queue.Queue(maxsize=depth)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._left_over: list[tuple[int, Any]] = []
        """What was drawn when the thread was stopped, and had no place in the queue."""

    def outer(self) -> Iterator[Any]:
        """The iterator for the loop."""
        reader = _Reader(self)
        weakref.finalize(reader, self._stopped.set)
        return reader

    @property
    def left(self) -> bool:
        """Whether nobody reads from it any more."""
        return self._stopped.is_set()

    def next(self) -> Any:
        """The next batch; raises what the iterator raised, in its place."""
        if self._ended:
            raise StopIteration
        kind, value = self._draw() if self._thread is None else self._drawn(self._thread)
        if kind == _DATA:
            if self._thread is None:
                self._look(value)
            return value
        if kind == _ERROR:
            raise value
        self._ended = True
        raise StopIteration

    def _drawn(self, thread: threading.Thread) -> tuple[int, Any]:
        """What the thread has drawn. Once it was stopped (at the script's end): what it left, then as without it."""
        if self._stopped.is_set():
            thread.join()
            if self._queue.empty():
                return self._left_over.pop() if self._left_over else self._draw()
        return self._queue.get()

    def _look(self, batch: Any) -> None:
        """Start the thread behind this batch, if none can be written over while it is used."""
        if self._memory is not None:
            if self._apart is None:
                self._apart = self._memory.apart(batch)
            if self._apart is None:
                return
            self._memory = None
            self._told(self._apart)
        if self._apart and not self.left:
            self._start()

    def _start(self) -> None:
        import torch

        cuda: Any = torch.cuda
        device = cuda.current_device() if cuda.is_initialized() else None
        given = torch.is_grad_enabled(), device
        self._thread = threading.Thread(target=self._run, args=given, name="hotlap-fetch-ahead", daemon=True)
        _RUNNING.add(self)
        self._thread.start()

    def _run(self, grad: bool, device: int | None) -> None:
        import torch

        torch.set_grad_enabled(grad)  # grad mode and device belong to a thread; a new one has it on, and the first
        if device is not None:
            torch.cuda.set_device(device)
        entry = self._draw()
        while self._put(entry) and entry[0] != _END:
            entry = self._draw()

    def _draw(self) -> tuple[int, Any]:
        """The next entry. After an error there may be more: a script that goes on asks for the batch behind it."""
        try:
            return _DATA, next(self._iterator)
        except StopIteration:
            return _END, None
        except BaseException as err:
            return _ERROR, err

    def _put(self, entry: tuple[int, Any]) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(entry, timeout=0.05)
            except queue.Full:
                continue
            return True
        self._left_over.append(entry)
        return False

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread after the batch that it is at; waits at most ``timeout_s`` seconds."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)


class _Reader:
    """What the loop holds. Unknown attributes come from the wrapped iterator (``_num_workers``, ``_dataset``, ...)."""

    def __init__(self, ahead: FetchAhead) -> None:
        self._ahead = ahead

    def __iter__(self) -> _Reader:
        return self

    def __next__(self) -> Any:
        return self._ahead.next()

    def __len__(self) -> int:
        return len(self._ahead._iterator)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name == "_ahead":
            raise AttributeError(name)
        return getattr(self._ahead._iterator, name)
