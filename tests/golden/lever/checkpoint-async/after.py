import copy
import os
import threading
import torch
from typing import Any


_saving: Any = []


def save_later(state: Any, path: Any, *args: Any, **kwargs: Any) -> None:
    """Like torch.save, but only copies the state and returns: a thread writes it, under another name first.

    Waits for the checkpoint before, and raises what went wrong with it. Python waits for the thread at exit.
    """
    while _saving:
        thread, failed = _saving.pop()
        thread.join()
        if failed:
            raise failed[0]
    if not isinstance(path, (str, os.PathLike)):
        torch.save(state, path, *args, **kwargs)
        return
    kept, failed = copy.deepcopy(state), []

    def write() -> None:
        try:
            torch.save(kept, f"{os.fspath(path)}.part", *args, **kwargs)
            os.replace(f"{os.fspath(path)}.part", path)
        except Exception as err:
            failed.append(err)
            raise

    thread = threading.Thread(target=write)
    thread.start()
    _saving.append((thread, failed))


def save(model, path):
    save_later(model.state_dict(), path)
