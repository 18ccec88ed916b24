"""Checkpoints written by a thread beside training."""

import copy
import os
import threading
import time
from typing import Any

import torch

__all__ = ["save_later"]

_changed = threading.Condition()
_waiting: Any = {}
_writers: Any = []
_failed: Any = []


def save_later(state: Any, path: Any, *args: Any, **kwargs: Any) -> None:
    """Like torch.save, but only copies the state and returns: a thread writes it, under another name first.

    Of saves to one path that come faster than that, the newest is written, once a second at most. Raises what went
    wrong with an earlier one. Python waits for the thread at exit.
    """
    if _failed:
        raise _failed.pop()
    if not isinstance(path, (str, os.PathLike)):
        torch.save(state, path, *args, **kwargs)
        return
    name, kept = os.fspath(path), copy.deepcopy(state)
    with _changed:
        _changed.wait_for(lambda: name in _waiting or not _waiting)
        _waiting[name] = (kept, args, kwargs)
        if not _writers:
            _writers.append(threading.Thread(target=_write_all))
            _writers[0].start()


def _write_all() -> None:
    try:
        while True:
            with _changed:
                if not _waiting:
                    _writers.clear()
                    return
                name, (state, args, kwargs) = _waiting.popitem()
                _changed.notify_all()
            begun = time.monotonic()
            torch.save(state, f"{name}.part", *args, **kwargs)
            os.replace(f"{name}.part", name)
            if name in _waiting:  # it will be written again: leave the cores to training for a while
                time.sleep(min(9 * (time.monotonic() - begun), 1.0))
    except Exception as err:
        with _changed:
            _failed.append(err)
            _waiting.clear()
            _writers.clear()
            _changed.notify_all()
        raise
