"""Letting everything that could look for a file wait until it has been written."""

from __future__ import annotations

import builtins
import functools
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hotlap.lever.contract import Target
from hotlap.lever.pending_saves import PendingSaves, Reach

__all__ = ["settle_before"]

_FILE_FUNCTIONS: dict[str, Reach] = {
    **dict.fromkeys(("access", "chmod", "chown", "lchown", "utime", "truncate", "setxattr"), "itself"),
    **dict.fromkeys(("stat", "lstat", "listdir", "scandir"), "inside"),
    **dict.fromkeys(("replace", "rename", "remove", "unlink", "link", "symlink", "rmdir", "open"), "below"),
}
"""How much of a folder each can see or take along: a folder's time of change is that of the newest file in it, and one
that is opened may be walked from there."""
_SENDS = ((os, "kill"), (os, "killpg"), (signal, "raise_signal"), (signal, "pthread_kill"))
"""What may end this process before it has written, or tell another one that the file is there."""
_PROCESSES = (
    "system", "_exit", "abort", "fork", "forkpty", "execv", "execve", "posix_spawn", "posix_spawnp",
)  # fmt: skip
"""What ends, begins or becomes another process, which knows nothing of saves that wait here."""
_SIGNALS = (
    "barrier", "monitored_barrier", "broadcast", "all_reduce", "reduce", "all_gather",
    "gather", "scatter", "send", "isend", "broadcast_object_list", "all_gather_object", "gather_object",
    "scatter_object_list", "destroy_process_group",
)  # fmt: skip
"""Of torch.distributed: what may tell another rank that the file is there."""
_WORKERS = ("torch.utils.data._utils.worker", "hotlap.probe.worker")
"""Modules of the function that a loader's worker runs."""
_ABILITIES = ("supports_dir_fd", "supports_fd", "supports_follow_symlinks", "supports_effective_ids")


def settle_before(target: Target, pending: PendingSaves) -> None:
    """Put a wait before the file functions of ``os``, ``open``, ``torch.load``, new processes, signals, what other
    ranks may take for a sign, and ``os._exit``. A loader's own workers are begun without: they read samples.

    While nothing is pending each costs one truth test. None of them counts as a change.
    """

    def swap(owner: Any, name: str, new: Any) -> None:
        target.replace(owner, name, new)
        target.changed(-1)

    waiting = {
        getattr(os, name): _waiting(getattr(os, name), pending, reach)
        for name, reach in _FILE_FUNCTIONS.items()
        if hasattr(os, name)
    }
    for old, new in waiting.items():
        swap(os, old.__name__, new)
    for name in _ABILITIES:  # the standard library asks these sets what a function can do
        able: set[Any] = getattr(os, name, set())
        swap(os, name, able | {getattr(os, old.__name__) for old in waiting if old in able})
    swap(builtins, "open", _waiting(builtins.open, pending))
    swap(io, "open", builtins.open)
    for name in _PROCESSES:
        if hasattr(os, name):
            swap(os, name, _waiting_for_all(getattr(os, name), pending))
    for owner, name in _SENDS:
        if hasattr(owner, name):
            swap(owner, name, _sending(getattr(owner, name), pending))
    swap(subprocess.Popen, "__init__", _waiting_for_all(subprocess.Popen.__init__, pending))

    def torch_ready(module: ModuleType) -> None:
        swap(module, "load", _waiting(module.load, pending))

    def ranks_ready(module: ModuleType) -> None:
        inner = sys.modules.get(f"{module.__name__}.distributed_c10d")
        for name in _SIGNALS:
            if hasattr(module, name):  # torch may have been built without them
                call = getattr(module, name)
                waiting = _waiting_for_all(call, pending)
                for owner in (module, inner):
                    if owner is not None and getattr(owner, name, None) is call:
                        swap(owner, name, waiting)

    def processes_ready(module: ModuleType) -> None:
        swap(module.BaseProcess, "start", _starting(module.BaseProcess.start, pending))

    target.on_import("torch", torch_ready)
    target.on_import("torch.distributed", ranks_ready)
    target.on_import("multiprocessing.process", processes_ready)


def _waiting(call: Callable[..., Any], pending: PendingSaves, reach: Reach = "below") -> Callable[..., Any]:
    @functools.wraps(call)
    def waits(*args: Any, **kwargs: Any) -> Any:
        if pending.busy():
            for path in args[:2] or [kwargs[k] for k in ("path", "src", "dst", "file", "f") if k in kwargs] or ["."]:
                pending.settle(path, reach)
        return call(*args, **kwargs)

    return waits


def _waiting_for_all(call: Callable[..., Any], pending: PendingSaves) -> Callable[..., Any]:
    @functools.wraps(call)
    def waits(*args: Any, **kwargs: Any) -> Any:
        if pending.busy():
            pending.settle()
        return call(*args, **kwargs)

    return waits


def _sending(send: Callable[..., Any], pending: PendingSaves) -> Callable[..., Any]:
    @functools.wraps(send)
    def sends(*args: Any) -> Any:
        if pending.busy() and args[-1:] != (0,):  # which only asks whether somebody lives
            pending.settle()
        return send(*args)

    return sends


def _starting(start: Callable[[Any], None], pending: PendingSaves) -> Callable[[Any], None]:
    @functools.wraps(start)
    def starts(self: Any) -> None:
        begun = getattr(self, "_target", None)
        if getattr(begun, "__module__", None) in _WORKERS:
            with pending.looking():
                return start(self)
        if pending.busy():
            pending.settle()
        return start(self)

    return starts
