"""A thread that draws from an iterator ahead of its reader, in order."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Any

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
    """

    def __init__(self, iterator: Iterator[Any], depth: int) -> None:
        self._iterator = iterator
        self._queue: queue.Queue[tuple[int, Any]] = queue.Queue(maxsize=depth)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended = False

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
        kind, value = self._draw() if self._thread is None else self._queue.get()
        if kind == _DATA:
            if self._thread is None:
                self._start()
            return value
        if kind == _ERROR:
            raise value
        self._ended = True
        raise StopIteration

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
