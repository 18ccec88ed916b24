"""Checkpoints on their way to disk: copied, queued, written in order by one thread.

Writing takes a core from the training, so what nobody can have seen is not written: of the saves to one path that wait,
only the newest is. The thread also rests between writes of one path, until somebody looks.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from hotlap.lever.plain_states import is_plain
from hotlap.lever.script_errors import as_the_scripts
from hotlap.lever.snapshots import Snapshots, copies_made, tensors_in
from hotlap.lever.whole_files import is_replaceable, write_whole

__all__ = ["PendingSaves", "Reach"]

Reach = Literal["itself", "inside", "below"]

REST_FACTOR = 9.0
"""Rest after writing, as a multiple of the time it took: a tenth of a core at most goes into saves of one path."""
REST_MOST_S = 1.0
"""Longest rest, and longest that a save waits while others are queued behind it: what kill -9 may lose beside the save
being written."""
FATES = 12
"""Saves after which it is known whether the script looks for its files at once, as the Trainer's rotation does."""
SMALL_BYTES = 256 << 20
"""States up to this size, all together, may wait while one is being written: a checkpoint is often several files."""


@dataclass(frozen=True, eq=False)
class _Save:
    path: str
    write: Callable[[str], None]
    state: Any
    nbytes: int
    queued: float


class PendingSaves:
    """At most ``limit`` saves wait at a time, or small ones for a moment; a further one waits for room.

    Forked children see none.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pid = os.getpid()
        self._snapshots = Snapshots(SMALL_BYTES)
        self._waiting: deque[_Save] = deque()
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None
        self._error: BaseException | None = None
        self._writing: _Save | None = None
        self._rest_path = ""
        self._rest_until = 0.0
        self._awaited = 0
        """Threads that wait for a file: no rest then."""
        self._wanted: set[_Save] = set()
        """Of those that wait, the ones that somebody waits for."""
        self._fates: deque[bool] = deque(maxlen=FATES)
        """Of the last saves written, whether somebody waited for them."""
        self._own: set[int] = set()
        """Threads that are taking over a save: they look at the folder, and wait for nothing."""

    def submit(self, save: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Take over ``torch.save(*args, **kwargs)``; False: the caller has to save by itself (nothing was done).

        Raises the error of an earlier save; before, this one is made in place, for the script may catch the error and
        go on.
        """
        path = args[1] if len(args) > 1 else kwargs.get("f")
        if self._error is not None and os.getpid() == self._pid:
            self.settle(path)
            try:
                save(*args, **kwargs)
            except Exception:
                self._raise_error()  # both are told: this one as the other's context
            self._raise_error()
        taken = False
        try:
            taken = self._take(save, args, kwargs)
        finally:
            if not taken:
                self.settle(path)  # or an older state would come after this one
        return taken

    def _take(self, save: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if len(args) != 2 or "obj" in kwargs or "f" in kwargs or os.getpid() != self._pid or self._is_fruitless():
            return False
        state, path = args
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            return False
        with self.looking():
            where = os.path.realpath(path)  # behind a link: the link stays, as when torch.save writes through it
            copied = self._copy(state) if is_replaceable(where) else None
        if copied is None:
            return False
        made = copies_made(copied[0])

        def write(name: str) -> None:
            for event in made:
                event.synchronize()
            save(copied[0], name, **kwargs)

        nbytes = sum(t.nbytes for t in tensors_in(copied[0]))
        self._queue(_Save(where, write, copied[0], nbytes, time.monotonic()))
        return True

    @contextmanager
    def looking(self) -> Iterator[None]:
        """This thread looks at files itself, and waits for none."""
        self._own.add(threading.get_ident())
        try:
            yield
        finally:
            self._own.discard(threading.get_ident())

    def _copy(self, state: Any) -> tuple[Any] | None:
        try:
            return (self._snapshots.take(state),) if is_plain(state) and _has_room(state) else None
        except Exception:  # not to be copied (non-leaf tensors): saved in place
            return None

    def _is_fruitless(self) -> bool:
        """Whether half of the last saves were waited for: copying and waiting take longer than saving in place."""
        return len(self._fates) == FATES and 2 * sum(self._fates) >= FATES

    def _queue(self, save: _Save) -> None:
        with self._changed:
            for older in [s for s in self._waiting if s.path == save.path and s is not self._writing]:
                self._waiting.remove(older)
                self._done_with(older)
            self._changed.wait_for(lambda: self._has_place_for(save))
            if self._writer is None:
                writer = threading.Thread(target=self._run, name="hotlap-checkpoint", daemon=True)
                writer.start()  # it waits for the lock; where no thread can be had, nothing is queued
                self._writer = writer
            self._waiting.append(save)

    def _has_place_for(self, save: _Save) -> bool:
        waiting = [s for s in self._waiting if s is not self._writing or save.nbytes > SMALL_BYTES]
        if len(waiting) < self._limit:
            return True
        held = save.nbytes + sum(s.nbytes for s in waiting)
        return held <= SMALL_BYTES and time.monotonic() - waiting[0].queued < REST_MOST_S

    def _done_with(self, save: _Save) -> None:
        if save.nbytes <= SMALL_BYTES:
            self._snapshots.give_back(save.state)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._writer = None
                    return
                self._rest()
                save = self._writing = self._waiting[0]
            begun = time.monotonic()
            try:
                write_whole(save.write, save.path)
            except BaseException as err:
                self._error = as_the_scripts(
                    err, f"Of an earlier torch.save to {save.path}, written in the background."
                )
            ended = time.monotonic()
            with self._changed:
                self._waiting.popleft()
                self._writing = None
                self._fates.append(save in self._wanted)
                self._wanted.discard(save)
                self._done_with(save)
                self._rest_path = save.path
                self._rest_until = ended + min(REST_FACTOR * (ended - begun), REST_MOST_S)
                self._changed.notify_all()

    def _rest(self) -> None:
        """Let newer saves take the place of one to the path just written; called with the lock held."""
        while not self._awaited and self._waiting[0].path == self._rest_path:
            left = self._rest_until - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def busy(self) -> bool:
        """Whether anything waits (cheap)."""
        return bool(self._waiting)

    def settle(self, path: Any = None, reach: Reach = "below") -> None:
        """Wait until ``path`` is written, and what lies ``inside`` the folder or ``below`` it; None: everything."""
        if not self._waiting or os.getpid() != self._pid or threading.current_thread() is self._writer:
            return
        if threading.get_ident() in self._own:
            return
        where: tuple[str, ...] = ()
        if path is not None:
            if not isinstance(path, str | bytes | os.PathLike):
                return
            try:
                with self.looking():
                    where = os.path.abspath(os.fsdecode(path)), os.path.realpath(os.fsdecode(path))
            except ValueError:  # no path at all: whoever is given it says so
                return
        with self._changed:
            self._awaited += 1
            self._changed.notify_all()
            self._wanted.update(s for s in self._waiting if _concerns(s.path, where, reach))
            try:
                self._changed.wait_for(lambda: not any(_concerns(s.path, where, reach) for s in self._waiting))
            finally:
                self._awaited -= 1

    def finish(self) -> None:
        """Wait for everything; raise the error of a save that failed."""
        writer = self._writer
        self.settle()
        if writer is not None and os.getpid() == self._pid:
            writer.join()
        self._raise_error()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None and os.getpid() == self._pid:
            raise error


def _concerns(saved: str, where: tuple[str, ...], reach: Reach) -> bool:
    if not where or saved in where:
        return True
    if reach == "inside":
        return os.path.dirname(saved) in where
    return reach == "below" and any(saved.startswith(w.rstrip(os.sep) + os.sep) for w in where)


def _has_room(state: Any) -> bool:
    """Whether device memory takes a second copy twice over (the copy stays on the device, as the file records it)."""
    import torch

    on_device = sum(t.nbytes for t in tensors_in(state) if t.device.type == "cuda")
    return on_device == 0 or bool(2 * on_device < torch.cuda.mem_get_info()[0])
