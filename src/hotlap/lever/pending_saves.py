"""Checkpoints on their way to disk: copied, queued, written in order by one thread."""

from __future__ import annotations

import copy
import os
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["PendingSaves"]


@dataclass(frozen=True)
class _Save:
    path: str
    write: Callable[[str], None]


class PendingSaves:
    """At most ``limit`` saves wait at a time; a further one waits for room. Forked children see none."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pid = os.getpid()
        self._waiting: deque[_Save] = deque()
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None
        self._error: BaseException | None = None

    def submit(self, save: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Take over ``torch.save(*args, **kwargs)``; False: the caller has to save by itself (nothing was done).

        Raises the error of an earlier save.
        """
        self._raise_error()
        if len(args) > 2 or "obj" in kwargs or "f" in kwargs or len(args) < 2 or os.getpid() != self._pid:
            return False
        state, path = args
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            return False
        where = os.path.abspath(os.fspath(path))
        if not os.path.isdir(os.path.dirname(where)) or not _has_room(state):
            return False  # torch.save raises the error that the script expects
        try:
            state = copy.deepcopy(state)
        except Exception:  # not to be copied (non-leaf tensors, open files, locks): saved in place
            return False
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < self._limit)
            self._waiting.append(_Save(where, lambda name: save(state, name, **kwargs)))
            if self._writer is None:
                self._writer = threading.Thread(target=self._run, name="hotlap-checkpoint", daemon=True)
                self._writer.start()
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._writer = None
                    return
                save = self._waiting[0]
            try:
                _write(save)
            except BaseException as err:
                self._error = err
            with self._changed:
                self._waiting.popleft()
                self._changed.notify_all()

    def busy(self) -> bool:
        """Whether anything waits (cheap)."""
        return bool(self._waiting)

    def settle(self, path: Any = None) -> None:
        """Wait until ``path`` (or what lies in the folder ``path``; None: everything) is written."""
        if not self._waiting or os.getpid() != self._pid or threading.current_thread() is self._writer:
            return
        where = None
        if path is not None:
            if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
                return
            where = os.path.abspath(os.fspath(path))
        with self._changed:
            self._changed.wait_for(lambda: not any(_concerns(s.path, where) for s in self._waiting))

    def finish(self) -> None:
        """Wait for everything; raise the error of a save that failed."""
        writer = self._writer
        self.settle()
        if writer is not None and os.getpid() == self._pid:
            writer.join()
        self._raise_error()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


def _concerns(saved: str, where: str | None) -> bool:
    return where is None or saved == where or saved.startswith(where.rstrip(os.sep) + os.sep)


def _write(save: _Save) -> None:
    """Under a temporary folder beside it, by the same file name (it is stored inside the archive), then renamed."""
    folder, name = os.path.split(save.path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    os.mkdir(temporary)
    try:
        written = os.path.join(temporary, name)
        save.write(written)
        if os.path.exists(save.path):
            shutil.copymode(save.path, written)
        os.replace(written, save.path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict) and depth < 8:
        for v in value.values():
            yield from _tensors(v, depth + 1)
    elif isinstance(value, list | tuple) and depth < 8:
        for v in value:
            yield from _tensors(v, depth + 1)
    elif isinstance(value, torch.nn.Module):
        yield from value.parameters()
        yield from value.buffers()


def _has_room(state: Any) -> bool:
    """Whether device memory takes a second copy twice over (the copy stays on the device, as the file records it)."""
    import torch

    on_device = sum(t.nbytes for t in _tensors(state) if t.device.type == "cuda")
    return on_device == 0 or bool(2 * on_device < torch.cuda.mem_get_info()[0])
